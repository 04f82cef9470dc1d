"""TRL's SFTTrainer on the records and settings of an experiment: what benchmarks/training.py measures spt against.

The same base, LoRA, dtypes (base in bfloat16, adapters in float32, computed under autocast), examples a step, rate,
schedule and greatest length; the loss is over whole texts with the end token after each. Trade-off: packed, its batches
are rows of `max_length` tokens, so that as many rows are taken as hold the same number of examples on average.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from spt.config import read_config
from spt.model import resolve_base


def run_trl(config: Path, clock: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Run SFTTrainer with the same model, LoRA, dtype, examples a step, rate and schedule."""
    settings = read_config(config)
    train, base = settings.train, resolve_base(settings.model.base)
    dtype = torch.float32 if settings.model.lora is None else getattr(torch, settings.model.dtype)
    texts = [json.loads(line)["text"] for line in Path(settings.data.train.paths[0]).read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(base)
    rows = train.batch_size
    if options.packing:  # as many examples a step as unpacked, in rows of the greatest length
        tokens = sum(len(ids) + 1 for ids in tokenizer(texts)["input_ids"])
        rows = max(1, round(train.batch_size * tokens / len(texts) / train.max_length))

    class Counted(SFTTrainer):
        def training_step(self, model: Any, inputs: dict[str, Any], *rest: Any, **named: Any) -> Any:
            mask = inputs.get("attention_mask")
            clock.tokens.append(int(inputs["input_ids"].numel() if mask is None else mask.sum()))
            return super().training_step(model, inputs, *rest, **named)

    given = SFTConfig(
        output_dir=str(Path(settings.output) / "trl"),
        per_device_train_batch_size=rows,
        num_train_epochs=1,
        learning_rate=train.learning_rate,
        lr_scheduler_type=train.lr_scheduler_type,
        warmup_steps=round(train.warmup_ratio * len(texts) / train.batch_size),
        max_length=train.max_length,
        packing=options.packing,
        train_sampling_strategy="group_by_length" if options.grouped else "random",
        gradient_checkpointing=options.checkpointing,
        bf16=settings.model.dtype == "bfloat16",
        use_cpu=not torch.accelerator.is_available(),
        optim="adamw_torch_fused",
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Counted(
        model=AutoModelForCausalLM.from_pretrained(base, dtype=dtype),
        args=given,
        train_dataset=Dataset.from_dict({"text": texts}),
        processing_class=tokenizer,
        peft_config=LoraConfig(task_type="CAUSAL_LM", **settings.model.lora) if settings.model.lora else None,
    )
    trainer.train()
    return clock.result()
