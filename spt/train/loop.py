"""The Accelerate loop: one step = one global batch = one update, on any number of devices.

In: segmented data and a model. Out: `train/` with its log, checkpoints and final model. Trade-off: everything happens
between two steps on the loop's own thread (logging, asking, saving), so that what a run leaves depends on steps alone.
"""

import time
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from spt.artifact import Stage, dump_json, open_stage, write_atomically
from spt.checkpoint import (
    State,
    Trained,
    at_step,
    check_finite,
    checkpoints,
    generators,
    load_checkpoint,
    load_weights,
    prune,
    save_checkpoint,
    truncate_log,
)
from spt.config import Config
from spt.loss import OBJECTIVES
from spt.model import Prepared
from spt.model.head import recompute_activations
from spt.progress import is_main_process, say, track
from spt.score import refuse_too_long
from spt.train.best import Watch, make_watch
from spt.train.card import refresh_card
from spt.train.flops import flops_per_token, peak_flops
from spt.train.learn import Learned, learn
from spt.train.log import Log
from spt.train.ranks import add_counts, agreed, leave, make_accelerator
from spt.train.save import save_final
from spt.train.setup import make_optimizer, make_scheduler, prepare, train_folder, train_key
from spt.train.sharding import engine_of, shard, whole
from spt.train.stop import Stop, stoppable
from spt.train.stream import Stream
from spt.train.throughput import Throughput


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
        loop = Loop.start(config, *prepare(config, folder))
        loop.run()
        loop.finish(stage)
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
    watch: Watch | None
    log: Log
    throughput: Throughput
    counts: Counter[str] = field(default_factory=Counter)
    state: State = field(default_factory=State)
    saved: int = 0
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, config: Config, stream: Stream, prepared: Prepared) -> "Loop":
        """Return a loop at its first step, or at the step of the newest checkpoint."""
        accelerator, settings = make_accelerator(config), config.train
        rank, world = accelerator.process_index, accelerator.num_processes
        stream = replace(stream, rank=rank, world_size=world)
        if settings.gradient_checkpointing:
            recompute_activations(prepared.model, compiled=settings.torch_compile)
        objective = OBJECTIVES[settings.objective](prepared.model, "inductor" if settings.torch_compile else None)
        optimizer = make_optimizer(objective, settings)
        scheduler = make_scheduler(optimizer, settings, stream.total_steps)
        # The schedule is not prepared: accelerate would step it once a process.
        objective, optimizer = shard(accelerator, objective, optimizer, settings)
        trained = Trained(accelerator.unwrap_model(objective), optimizer, scheduler, engine_of(objective))
        watch = make_watch(config)
        if watch is not None:
            refuse_too_long(prepared.model, prepared.tokenizer, watch.among, watch.settings)
        log = Log.start(config, train_folder(config), accelerator)
        peak = peak_flops(accelerator.device, config.model.dtype)
        throughput = Throughput(flops_per_token(prepared.model), peak and peak * world)
        loop = cls(config, accelerator, prepared, stream, objective, trained, watch, log, throughput)
        torch.manual_seed((config.seed * 1_000 + rank) % 2**63)
        loop._resume()
        return loop

    @property
    def folder(self) -> Path:
        """Return the training folder."""
        return train_folder(self.config)

    @property
    def ended(self) -> bool:
        """Return whether no step is left, or early stopping asks for no more."""
        stopped = self.watch is not None and self.watch.exhausted(self.state)
        return stopped or self.state.step >= self.stream.total_steps

    def run(self) -> None:
        """Take every step that is left."""
        total = self.stream.total_steps
        with (
            stoppable(self.folder) as stop,
            closing(self.stream.steps(total if self.ended else self.state.step)) as steps,
            track("train", total, "steps", done=self.state.step) as bar,
        ):
            for step in self.throughput.timed(steps):
                done = learn(
                    self.accelerator,
                    self.objective,
                    self.trained.optimizer,
                    step,
                    number=self.state.step + 1,
                    max_norm=self.config.train.max_grad_norm,
                    stop=stop,
                )
                if done is None:
                    self._stop(stop)
                self._count(done)
                self.counts += step.counts
                loss = self.state.nats / max(self.state.target_tokens, 1)
                bar.advance(note=f"loss {loss:.3f}, {self.throughput.rate:.0f} tokens/s")
                self._after(done.norm)
                if self.ended:
                    break
            if self.accelerator.reduce(torch.tensor(stop.vote(), device=self.accelerator.device)).item():
                self._stop(stop)  # asked for after the last vote

    def _after(self, norm: float) -> None:
        """Log, ask and save where a step is due for it."""
        settings, step = self.config.train, self.state.step
        last, gained = step == self.stream.total_steps, False
        if step % settings.logging_steps == 0 or last:
            self._log_loss(norm)
        if self.watch is not None and (step % self.watch.every == 0 or last):
            with whole(self.objective):
                found = self.watch.ask(self.trained.model.model, self.prepared.tokenizer, self.accelerator)
            self._log(evaluate=found)
            gained = self.watch.best is not None and self.watch.best.note(self.state, found)
        if self.ended and self.state.target_tokens:  # stopped early, between two lines of the loss
            self._log_loss(norm)
        if step % (settings.save_steps or self.stream.steps_per_epoch) == 0 or gained or self.ended:
            self._save()

    def _count(self, done: Learned) -> None:
        self.trained.scheduler.step()
        self.state.step += 1
        self.state.nats += done.nats
        self.state.target_tokens += done.target_tokens
        self.state.total_tokens += done.target_tokens
        self.state.tokens += done.tokens
        self.throughput.count(targets=done.target_tokens, tokens=done.tokens, size=done.size)

    def _stop(self, stop: Stop) -> NoReturn:
        """Save and end: every rank comes here before the same step."""
        if self.state.step > self.saved:
            self._save()
        leave()
        raise stop.error(self.folder, self.state.step, self.stream.total_steps)

    def _log_loss(self, norm: float) -> None:
        state = self.state
        self._log(
            loss=state.nats / max(state.target_tokens, 1),
            learning_rate=self.trained.scheduler.get_last_lr()[0],
            grad_norm=norm,
            target_tokens=state.total_tokens,
            throughput=self.throughput.take(),
        )
        state.nats, state.target_tokens = 0.0, 0

    def _log(self, **values: Any) -> None:
        epoch = round(self.state.step / self.stream.steps_per_epoch, 4)
        self.log.write(self.state.step, epoch=epoch, tokens=self.state.tokens, **values)

    def _save(self) -> None:
        check_finite(self.trained.model, self.state.step)
        states = gather_object([generators()])
        self.state.counts = add_counts(self.state.counts, self.counts)
        self.counts.clear()
        self.state.seconds = time.monotonic() - self.started
        self.log.sync()
        keep = self.config.train.save_total_limit
        save_checkpoint(self.folder / "checkpoints", self.state, self.trained, states, keep)
        self.saved = self.state.step
        self.accelerator.wait_for_everyone()

    def _resume(self) -> None:
        found = checkpoints(self.folder / "checkpoints")
        if found:
            total = self.stream.total_steps
            self.state = load_checkpoint(found[-1], self.trained, self.accelerator.process_index, total)
            self.saved, self.started = self.state.step, time.monotonic() - self.state.seconds
            say(f"continuing after step {self.state.step} of {self.stream.total_steps}")
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            truncate_log(self.folder / "metrics.jsonl", self.state.step)
            prune(self.folder / "checkpoints", self.config.train.save_total_limit, self.state.best_step)

    def finish(self, stage: Stage | None) -> None:
        """Write the final model and the manifest, on the main process."""
        self.log.finish()
        self.accelerator.wait_for_everyone()
        best = self.state.best_step
        if self.config.train.load_best_model_at_end and best is not None and best != self.state.step:
            load_weights(at_step(self.folder / "checkpoints", best), self.trained)
        save_final(self.config, self.prepared, self.folder)
        if stage is not None:
            timings = {"seconds": round(self.state.seconds, 1), "world_size": self.accelerator.num_processes}
            write_atomically(self.folder / "timings.json", dump_json(timings) + "\n")
            stage.finish(
                name=self.config.name,
                steps=self.state.step,
                epochs=round(self.state.step / self.stream.steps_per_epoch, 4),
                records=len(self.stream.data),
                tokens=self.state.tokens,
                target_tokens=self.state.total_tokens,
                counts=self.state.counts,
                best=None if self.state.best is None else {"value": self.state.best, "step": self.state.best_step},
                mix=None if self.stream.mix is None else self.stream.mix.counts,
            )
            refresh_card(self.folder)
            say(f"{self.folder / 'final'}: {self.state.step} steps, {self.state.total_tokens} target tokens")
        self.accelerator.wait_for_everyone()
