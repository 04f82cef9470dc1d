"""The Accelerate loop: one step = one global batch = one update, on any number of devices.

In: segmented data and a model. Out: `train/` with its log, checkpoints and final model. The loss of a step is the sum
of nats over all micro-batches and ranks, divided once by their target tokens. Trade-off: the loop waits for each
step's loss, so that a loss that is not a number stops it before the update.
"""

import json
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from spt.artifact import Stage, dump_json, open_stage, write_atomically
from spt.batch import Batch
from spt.benchmark.questions import QuestionSet, read_questions
from spt.checkpoint import (
    State,
    Trained,
    check_finite,
    checkpoints,
    generators,
    load_checkpoint,
    prune,
    save_checkpoint,
    sync,
    truncate_log,
)
from spt.config import Config
from spt.encode import Encoder
from spt.errors import NonFiniteError
from spt.loss import OBJECTIVES
from spt.model import Prepared
from spt.progress import Bar, is_main_process, say, track
from spt.score import rates, score_questions, spread
from spt.statistics import tested
from spt.train.ranks import agreed, make_accelerator
from spt.train.save import save_final
from spt.train.setup import Stream, make_optimizer, make_scheduler, prepare, train_folder, train_key


def train(config: Config, *, force: bool = False) -> Path:
    """Return the finished training folder, `OUTPUT/train`.

    Under `torchrun` or `accelerate launch` every rank calls this; the main one writes. A folder with the same key is
    reused or continued. Raises MissingError, StaleError, ModelError, NonFiniteError.
    """
    folder = train_folder(config)
    main = is_main_process()
    with open_stage(folder, train_key(config), force=force) if main else nullcontext() as stage:
        if stage is not None and stage.finished:
            say(f"{folder}: finished before with the same settings, reused")
        if agreed(stage is not None and stage.finished, config):
            return folder
        data, prepared = prepare(config, folder)
        loop = Loop.start(config, data, prepared)
        started = time.monotonic()
        loop.run()
        loop.finish(stage, time.monotonic() - started)
    return folder


@dataclass
class Loop:
    """A training in progress."""

    config: Config
    accelerator: Accelerator
    prepared: Prepared
    stream: Stream
    objective: Any
    trained: Trained
    questions: QuestionSet | None
    state: State = field(default_factory=State)

    @classmethod
    def start(cls, config: Config, data: Any, prepared: Prepared) -> "Loop":
        """Return a loop at its first step, or at the step of the newest checkpoint."""
        accelerator = make_accelerator(config)
        settings, tokenizer = config.train, prepared.tokenizer
        pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        encoder = Encoder(tokenizer, prepared.tag, settings.max_length, settings.too_long, settings.loss_on)
        rank, world = accelerator.process_index, accelerator.num_processes
        stream = Stream(data, encoder, config.segment, config.permute, settings, config.seed, pad_id or 0, rank, world)
        if settings.gradient_checkpointing:
            prepared.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        objective = OBJECTIVES[settings.objective](prepared.model)
        optimizer = make_optimizer(objective, settings)
        scheduler = make_scheduler(optimizer, settings, stream.total_steps)
        # The schedule is not prepared: accelerate would step it once a process.
        objective, optimizer = accelerator.prepare(objective, optimizer)
        trained = Trained(accelerator.unwrap_model(objective), optimizer, scheduler)
        wanted = config.data.questions if settings.eval_steps is not None else None
        questions = None if wanted is None else read_questions(Path(wanted.path))
        loop = cls(config, accelerator, prepared, stream, objective, trained, questions)
        torch.manual_seed((config.seed * 1_000 + rank) % 2**63)
        loop._resume()
        return loop

    @property
    def folder(self) -> Path:
        """Return the training folder."""
        return train_folder(self.config)

    def run(self) -> None:
        """Take every step that is left."""
        settings, total = self.config.train, self.stream.total_steps
        save_steps = settings.save_steps or self.stream.steps_per_epoch
        started, tokens_before = time.monotonic(), self.state.total_tokens
        with track("train", total, "steps", done=self.state.step) as bar:
            for ids, batches in self.stream.steps(self.state.step):
                norm = self._step(ids, batches)
                self._advance(bar, (self.state.total_tokens - tokens_before) / (time.monotonic() - started))
                last = self.state.step == total
                if self.state.step % settings.logging_steps == 0 or last:
                    self._log_loss(norm, (self.state.total_tokens - tokens_before) / (time.monotonic() - started))
                if self.questions is not None and (self.state.step % (settings.eval_steps or total) == 0 or last):
                    self._log_answers()
                if self.state.step % save_steps == 0 or last:
                    self._save()
                if last:
                    break

    def _step(self, ids: list[str], batches: list[Batch]) -> float:
        """Learn one global batch; return the gradient norm before clipping."""
        self.objective.train()
        world, device = self.accelerator.num_processes, self.accelerator.device
        counted = torch.tensor(float(sum(batch.target_tokens for batch in batches)), device=device)
        tokens = int(self.accelerator.reduce(counted).item())
        nats = torch.zeros((), device=device)
        for number, batch in enumerate(batches, 1):
            with nullcontext() if number == len(batches) else self.accelerator.no_sync(self.objective):
                loss = self.objective(
                    batch.input_ids.to(device), batch.attention_mask.to(device), batch.labels.to(device)
                )
                # DDP averages over ranks: times world undoes it, so that the sum is divided once.
                self.accelerator.backward(loss * (world / max(tokens, 1)))
            nats += loss.detach()
        total = self.accelerator.reduce(nats).item()
        self._check_finite("loss", total, ids)
        parameters = [p for p in self.objective.parameters() if p.requires_grad]
        norm = float(self.accelerator.clip_grad_norm_(parameters, self.config.train.max_grad_norm))
        self._check_finite("gradient norm", norm, ids)
        self.trained.optimizer.step()
        self.trained.optimizer.zero_grad()
        self.trained.scheduler.step()
        self.state.step += 1
        self.state.nats += total
        self.state.target_tokens += tokens
        self.state.total_tokens += tokens
        return norm

    def _check_finite(self, what: str, value: float, ids: list[str]) -> None:
        if not math.isfinite(value):
            shown = ", ".join(ids[:8]) + (" ..." if len(ids) > 8 else "")
            raise NonFiniteError(
                f"step {self.state.step + 1}: the {what} is {value}; nothing was updated. Records: {shown}. "
                "Look for broken records, or start anew with --force and a lower train.learning_rate."
            )

    def _advance(self, bar: Bar, tokens_per_second: float) -> None:
        loss = self.state.nats / max(self.state.target_tokens, 1)
        bar.advance(note=f"loss {loss:.3f}, {tokens_per_second:.0f} tokens/s")

    def _log_loss(self, norm: float, tokens_per_second: float) -> None:
        state = self.state
        self._log(
            loss=state.nats / max(state.target_tokens, 1),
            learning_rate=self.trained.scheduler.get_last_lr()[0],
            grad_norm=norm,
            target_tokens=state.total_tokens,
            tokens_per_second=round(tokens_per_second, 1),
        )
        state.nats, state.target_tokens = 0.0, 0

    def _log_answers(self) -> None:
        assert self.questions is not None
        chosen = spread(tested(self.questions.questions), self.config.train.eval_questions)
        scores = score_questions(
            self.trained.model.model,
            self.prepared.tokenizer,
            chosen,
            self.config.evaluate,
            accelerator=self.accelerator,
        )
        self._log(evaluate=rates(scores))

    def _log(self, **values: Any) -> None:
        if not self.accelerator.is_main_process:
            return
        row = {"step": self.state.step, "epoch": round(self.state.step / self.stream.steps_per_epoch, 4), **values}
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def _save(self) -> None:
        check_finite(self.trained.model, self.state.step)
        states = gather_object([generators()])
        self.state.counts = self._counts()
        if self.accelerator.is_main_process:
            keep = self.config.train.save_total_limit
            sync(self.folder / "metrics.jsonl")
            save_checkpoint(self.folder / "checkpoints", self.state, self.trained, states, keep)
        self.accelerator.wait_for_everyone()

    def _counts(self) -> dict[str, int]:
        """Return what encoding counted, over all ranks and earlier runs, and start counting anew."""
        totals = dict(self.state.counts)
        for counts in gather_object([dict(self.stream.encoder.counts)]):
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + count
        self.stream.encoder.counts.clear()
        return totals

    def _resume(self) -> None:
        found = checkpoints(self.folder / "checkpoints")
        if found:
            total = self.stream.total_steps
            self.state = load_checkpoint(found[-1], self.trained, self.accelerator.process_index, total)
            say(f"continuing after step {self.state.step} of {self.stream.total_steps}")
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            truncate_log(self.folder / "metrics.jsonl", self.state.step)
            prune(self.folder / "checkpoints", self.config.train.save_total_limit)

    def finish(self, stage: Stage | None, seconds: float) -> None:
        """Write the final model and the manifest, on the main process."""
        self.accelerator.wait_for_everyone()
        if stage is not None:
            save_final(self.config, self.prepared, self.folder)
            timings = {"seconds": round(seconds, 1), "world_size": self.accelerator.num_processes}
            write_atomically(self.folder / "timings.json", dump_json(timings) + "\n")
            stage.finish(
                name=self.config.name,
                steps=self.state.step,
                epochs=round(self.state.step / self.stream.steps_per_epoch, 4),
                records=len(self.stream.data),
                target_tokens=self.state.total_tokens,
                counts=self.state.counts,
            )
            say(f"{self.folder / 'final'}: {self.state.step} steps, {self.state.total_tokens} target tokens")
        self.accelerator.wait_for_everyone()
