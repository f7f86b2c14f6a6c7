"""Whatever is sent that the schema allows, or does not, the service answers, never with a fault of its own.

EXAMPLES=500 pytest tests/serve/test_schema.py sends more of it.
"""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance
from tests.serve.running import Running

from entourage.refiner.gallery import Gallery
from entourage.serve import make_app

EXAMPLES = int(os.environ.get("EXAMPLES", "15"))  # requests to each endpoint, allowed and not
KNOWN = {"authorization": "Bearer t"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
PHASES = (Phase.explicit, Phase.generate)  # a request that fails is told as it was sent
ENDPOINTS = {
    *("POST /search", "POST /refine", "POST /rerank", "POST /items"),
    *("DELETE /items/{id}", "GET /changes", "GET /health", "GET /metrics"),
}


@pytest.fixture(scope="module")
def operations(tmp_path_factory, vectors):
    with Gallery(tmp_path_factory.mktemp("schema") / "gallery") as gallery:
        gallery.add(vectors[:30], range(30))
        running = Running(make_app(gallery, token="t"))
        schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json", headers=KNOWN)
        yield {operation.ok().label: operation.ok() for operation in schema.get_all_operations()}
        running.stop()


def test_the_schema_names_every_endpoint(operations):
    assert operations.keys() == ENDPOINTS


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not allowed"])
@pytest.mark.parametrize("endpoint", sorted(ENDPOINTS))
def test_no_request_meets_a_fault(operations, endpoint, mode):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operations[endpoint].as_strategy(generation_mode=mode))
    def ask(case):
        case.call_and_validate(checks=CHECKS, headers=KNOWN)

    if mode is GenerationMode.NEGATIVE and endpoint in ("GET /health", "GET /metrics"):
        return  # they take nothing that could be wrong
    ask()
