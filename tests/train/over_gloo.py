"""`torchrun over_gloo.py FILE train CONFIG`: spt on CPUs as accelerate would start it on GPUs with that FILE.

accelerate knows FSDP2 and DeepSpeed on GPUs only: the settings come from its own launcher, its state is set by hand.
"""

import os
import sys

from accelerate import Accelerator
from accelerate.commands import launch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin, InitProcessGroupKwargs
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env


def settings_of(file):
    """Return the environment that `accelerate launch --config_file FILE` gives."""
    parser = launch.launch_command_parser()
    arguments, found, _ = launch._validate_launch_command(parser.parse_args(["--config_file", str(file), "train.py"]))
    if not arguments.use_deepspeed:
        return prepare_multi_gpu_env(arguments)
    arguments.deepspeed_fields_from_accelerate_config = ",".join(found.deepspeed_config)
    return prepare_deepspeed_cmd_env(arguments)[1]


class OverGloo(Accelerator):
    def __init__(self, **options):
        if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
            options |= {"cpu": False, "kwargs_handlers": [InitProcessGroupKwargs(backend="gloo")]}
        super().__init__(**options)
        if os.environ.get("ACCELERATE_USE_FSDP") == "true":
            shared = AcceleratorState._shared_state
            if "fsdp_plugin" not in shared:
                shared["fsdp_plugin"] = FullyShardedDataParallelPlugin()
                if self.mixed_precision != "no":
                    shared["fsdp_plugin"].set_mixed_precision(self.mixed_precision)
            shared["distributed_type"] = PartialState._shared_state["distributed_type"] = DistributedType.FSDP


if __name__ == "__main__":
    os.environ.update(settings_of(sys.argv.pop(1)), DS_ACCELERATOR="cpu", ACCELERATE_USE_CPU="false")
    import spt.train.ranks
    from spt.cli import main

    spt.train.ranks.Accelerator = OverGloo
    main()
