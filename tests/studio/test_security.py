"""Local-only access, limits and security headers."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from prudent.studio.application import create_application
from prudent.studio.session import DataSets


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "127.0.0.1:x", "", "[::1"]
)
def test_other_names_for_this_machine_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", f"/api/data/{'0' * 32}", "/assets/page.js"):
        assert client.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost:8765", "localhost"])
def test_our_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_posts_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/examples/staffing", headers=headers).status_code == 403


def test_posts_of_the_page_are_accepted(client: TestClient) -> None:
    headers = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/examples/staffing", headers=headers).status_code == 200


def test_every_answer_is_under_a_strict_policy_and_none_allows_other_origins(client: TestClient) -> None:
    for path in ("/", f"/api/data/{'0' * 32}", "/nothing", "/assets/page.js"):
        headers = client.get(path, headers={"Origin": "http://evil.example"}).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_the_page_has_no_inline_script_and_no_foreign_address(client: TestClient) -> None:
    page = client.get("/").text
    assert "<script>" not in page
    assert " style=" not in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_large_files_are_refused_by_bytes_and_rows() -> None:
    small = create_application(DataSets(most_bytes=1 << 20, most_rows=100))
    with TestClient(small, base_url="http://localhost") as client:
        long = client.post("/api/data", content=b"f,y\n" + b"0.5,1\n" * 200_000)
        assert (long.status_code, long.json()["where"]) == (413, "body")
        assert "the file has more than 1 MB, which is what the studio takes" in long.json()["message"]
        question = client.post("/api/policy", content=b" " * (2 << 20))
        assert (question.status_code, question.json()["where"]) == (413, "body")
        streamed = client.post("/api/data", content=iter([b"f,y\n", *[b"0.5,1\n" * 10_000] * 20]))
        assert (streamed.status_code, streamed.json()["where"]) == (413, "body")
        assert "1 MB" in streamed.json()["message"]
        many = client.post("/api/data", content=b"f,y\n" + b"0.5,1\n" * 101)
        assert many.status_code == 413
        assert "100 rows" in many.json()["message"]
