# %% [markdown]
# # My vectors are in Lance, Milvus, Qdrant or Postgres
#
# `entourage refine ADDRESS` reads a table or collection where it lives and writes a twin, `NAME_refined`, with the
# same ids and fields. The original is only read. `pip install 'entourage[lance,milvus,qdrant]'`; what is not
# installed is left out.

# %%
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import load_digits

from entourage import ContextRefiner

X = load_digits().data.astype(np.float32)
os.chdir(tempfile.mkdtemp())


def refine(address):
    """Run `entourage refine ADDRESS`, as in a terminal."""
    subprocess.run([sys.executable, "-m", "entourage", "refine", address], stdout=subprocess.DEVNULL, check=True)


# %% [markdown]
# **LanceDB**, a folder. With `lance://FOLDER/TABLE` nothing else changes.

# %%
if find_spec("lancedb"):
    import lancedb

    database = lancedb.connect("lance")
    database.create_table("items", [{"id": row, "vector": vector} for row, vector in enumerate(X)])
    refine("lance://lance/items")
    twin = database.open_table("items_refined")
    print("Lance:", twin.count_rows(), "refined rows with the columns", ", ".join(twin.schema.names))

# %% [markdown]
# **Milvus**, here as a file; a server is `milvus://HOST:PORT/COLLECTION`.

# %%
if find_spec("pymilvus"):
    from milvus_lite.server_manager import server_manager_instance as lite
    from pymilvus import MilvusClient

    client = MilvusClient("milvus.db")
    client.create_collection("items", dimension=X.shape[1], metric_type="COSINE")
    client.insert("items", [{"id": row, "vector": vector.tolist()} for row, vector in enumerate(X)])
    client.close()
    lite.release_server(os.path.abspath("milvus.db"))  # a file is opened by one process at a time
    refine("milvus://milvus.db/items")
    client = MilvusClient("milvus.db")
    client.load_collection("items_refined")
    print("Milvus:", len(client.query("items_refined", filter="id >= 0", output_fields=["id"])), "refined entities")
    client.close()

# %% [markdown]
# **Qdrant**, here as a folder; a server is `qdrant://HOST:PORT/COLLECTION`.

# %%
if find_spec("qdrant_client"):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path="qdrant")
    client.create_collection("items", models.VectorParams(size=X.shape[1], distance=models.Distance.COSINE))
    client.upsert("items", models.Batch(ids=list(range(len(X))), vectors=X.tolist()))
    client.close()
    refine("qdrant://qdrant/items")
    client = QdrantClient(path="qdrant")
    print("Qdrant:", client.count("items_refined").count, "refined points")
    client.close()

# %% [markdown]
# **Postgres** with pgvector is `pgvector://HOST/DATABASE/TABLE`. Without that extension, read ids and vectors, refine,
# and write them into a second column; set `POSTGRES` to a connection string to run it.

# %%
if os.environ.get("POSTGRES"):
    import psycopg

    with psycopg.connect(os.environ["POSTGRES"]) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE items (id int PRIMARY KEY, embedding real[], refined real[])")
        rows = [(row, vector.tolist()) for row, vector in enumerate(X)]
        cursor.executemany("INSERT INTO items (id, embedding) VALUES (%s, %s)", rows)

        cursor.execute("SELECT id, embedding FROM items ORDER BY id")
        ids, vectors = zip(*cursor.fetchall(), strict=True)
        refined = ContextRefiner().fit_transform(np.array(vectors, np.float32))
        cursor.executemany(
            "UPDATE items SET refined = %s WHERE id = %s",
            [(vector.tolist(), row) for row, vector in zip(ids, refined, strict=True)],
        )
        cursor.execute("SELECT count(*) FROM items WHERE refined IS NOT NULL")
        print("Postgres:", cursor.fetchone()[0], "refined rows")
