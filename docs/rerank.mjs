// node rerank.mjs refine.onnx found.json: re-ranks what an index returned for a query, as `entourage.rerank` does.
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-node";

const [, , model, file] = process.argv;
const { query, candidates } = JSON.parse(readFileSync(file, "utf8"));
const [count, dim] = [candidates.length, query.length];
const session = await ort.InferenceSession.create(model);
const { scores } = await session.run({
  vector: new ort.Tensor("float32", Float32Array.from(query), [dim]),
  context: new ort.Tensor("float32", Float32Array.from(candidates.flat()), [count, dim]),
  mask: new ort.Tensor("bool", new Uint8Array(count).fill(1), [count]),
});
const order = [...scores.data].map((score, row) => ({ row, score })).sort((a, b) => b.score - a.score);
console.log(JSON.stringify(order));
