"""`--push-to-hub` against a server on loopback that takes the Hub's calls."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import huggingface_hub.constants
import pytest

from spt.config import Config
from spt.errors import ConfigError, InputError, WorkError
from spt.model import Prepared
from spt.train import check_push, push_to_hub
from spt.train.card import note_facts


class Hub(BaseHTTPRequestHandler):
    """Creates repositories and takes one commit; keeps what it was sent."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen = self.server.seen
        seen.append((self.path, self.headers["Authorization"]))
        if self.path in self.server.refused:
            return self.answer({"error": "no space left in your quota"}, 403)
        if self.path == "/api/repos/create":
            self.server.created = json.loads(body)
            return self.answer({"url": f"{self.server.address}/owner/people"})
        if self.path.endswith("/preupload/main"):
            files = [{"path": file["path"], "uploadMode": "regular"} for file in json.loads(body)["files"]]
            return self.answer({"files": [{**file, "shouldIgnore": False} for file in files]})
        if self.path.endswith("/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return self.answer({"commitUrl": f"{self.server.address}/owner/people/commit/1", "commitOid": "1"})
        return self.answer({}, 200)

    def do_GET(self):
        self.answer({"id": "owner/people", "siblings": []})

    def answer(self, value, code=200):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Be silent."""


@pytest.fixture
def hub(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        server.address = f"http://127.0.0.1:{server.server_port}"
        server.seen, server.files, server.refused = [], {}, set()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.address)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_of-the-test")
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def config(tmp_path):
    final = tmp_path / "train/final"
    final.mkdir(parents=True)
    (final / "model.safetensors").write_bytes(b"weights")
    (final / "README.md").write_text("---\nlibrary_name: transformers\n---\n# people\n")
    return Config(name="people", output=str(tmp_path), data={"train": {"path": "x"}}, model={"base": "owner/base"})


def test_the_pushed_card_loads_the_model_from_where_it_was_pushed(hub, config, tmp_path):
    note_facts(config, Prepared(None, None, None, grown=False), tmp_path / "train")
    assert f'place = "{tmp_path}/train/final"' in (tmp_path / "train/README.md").read_text()
    push_to_hub(config)
    assert b'place = "owner/people"' in hub.files["README.md"]


def test_the_final_folder_goes_to_a_private_repository_with_its_card(hub, config):
    assert push_to_hub(config) == f"{hub.address}/owner/people"
    assert hub.created["name"] == "people"
    assert hub.created.get("private") or hub.created.get("visibility") == "private"  # by the release of the client
    assert hub.files.keys() == {"model.safetensors", "README.md"}
    assert hub.files["model.safetensors"] == b"weights"
    assert {token for _, token in hub.seen} == {"Bearer hf_of-the-test"}


def test_a_push_that_fails_keeps_the_model_and_the_same_call_pushes_again(hub, config):
    hub.refused.add("/api/models/owner/people/commit/main")
    with pytest.raises(WorkError, match=r"finished, but not pushed to people .*the same command pushes it again"):
        push_to_hub(config)
    assert not hub.files
    hub.refused.clear()
    push_to_hub(config)
    assert hub.files["model.safetensors"] == b"weights"


def test_only_the_main_process_pushes(hub, config, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert push_to_hub(config) is None
    assert not hub.seen


def test_what_the_hub_would_refuse_is_found_before_training(config, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of-the-test")
    assert check_push(config) == "people"
    wrong = config.model_copy(update={"name": "my people!"})
    with pytest.raises(ConfigError, match=r"train\.hub_model_id: .*give OWNER/NAME"):
        check_push(wrong)
    monkeypatch.setattr("spt.train.hub.get_token", lambda: None)
    with pytest.raises(InputError, match="no token of the Hub is there; run `hf auth login`"):
        check_push(config)


def test_an_adapter_of_a_base_on_this_machine_is_not_pushed(hub, config, tmp_path):
    adapter = {"base_model_name_or_path": str(tmp_path)}
    (tmp_path / "train/final/adapter_config.json").write_text(json.dumps(adapter))
    with pytest.raises(InputError, match=r"nobody could load it from the Hub. Run `spt merge"):
        push_to_hub(config)
    assert not hub.seen
