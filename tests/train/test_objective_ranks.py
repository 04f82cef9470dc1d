"""Two ranks make the gradient of one, wrapped in DDP or sharded by FSDP2, packed and with logits made in chunks."""

import subprocess
import sys
from pathlib import Path

import pytest
from experiment import environment, free_port


@pytest.mark.full
def test_two_ranks_have_the_loss_and_gradient_of_one_even_where_one_has_no_examples():
    script = Path(__file__).with_name("objective_ranks.py")
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port())]
    done = subprocess.run(
        [sys.executable, *launcher, str(script)], env=environment(), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) == 5 * 2 * 2  # kinds, wrappers, shares
    for *case, loss, gradient in rows:
        assert float(loss) < 1e-6, case
        assert float(gradient) < 2e-6, case
