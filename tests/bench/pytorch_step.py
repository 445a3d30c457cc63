#!/usr/bin/python3
"""One training step of ndplan's executor against the same step in PyTorch, on one core of this machine.

    pytorch_step.py BUILD/tests/bench/step_rate [--rounds 6] [--steps 3] [--micro-batch 2] [--cpu 0]

Needs PyTorch (Debian: python3-torch); nothing else of ndplan does. Both take the same model (data/llama_50m.json), as many
tokens, fp32, one thread, the same core, and do the same work a step: forward and backward pass, clipping at 1, AdamW with
decay of matrices only. They take turns, `rounds` times `steps` steps each, after one step that is not counted; prints the
median step times, their 10 % and 90 % quantiles, and the ratio of the medians over all steps and in each round.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402  (after the number of threads)
import torch.nn.functional as F  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "data", "llama_50m.json")
SEQ_LEN = 512  # as in step_rate.c


class RmsNorm(torch.nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def linear(columns, rows):
    return torch.nn.Linear(columns, rows, bias=False)


def rotate(x, cos, sin):
    """Halves paired: (i, i + dim/2) turn together."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config["num_attention_heads"]
        self.kv_heads = config["num_key_value_heads"]
        self.dim = config["hidden_size"] // self.heads
        hidden = config["hidden_size"]
        self.q = linear(hidden, self.heads * self.dim)
        self.k = linear(hidden, self.kv_heads * self.dim)
        self.v = linear(hidden, self.kv_heads * self.dim)
        self.o = linear(self.heads * self.dim, hidden)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.heads, self.dim).transpose(1, 2)
        k = self.k(x).view(batch, length, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v(x).view(batch, length, self.kv_heads, self.dim).transpose(1, 2)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin).repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = torch.baddbmm(mask.expand(batch * self.heads, -1, -1), q.reshape(-1, length, self.dim),
                               k.reshape(-1, length, self.dim).transpose(1, 2), alpha=1.0 / math.sqrt(self.dim))
        out = torch.bmm(torch.softmax(scores, dim=-1), v.reshape(-1, length, self.dim))
        return self.o(out.view(batch, self.heads, length, self.dim).transpose(1, 2).reshape(batch, length, -1))


class Block(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner, eps = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
        self.norm1 = RmsNorm(hidden, eps)
        self.attention = Attention(config)
        self.norm2 = RmsNorm(hidden, eps)
        self.gate = linear(hidden, inner)
        self.up = linear(hidden, inner)
        self.down = linear(inner, hidden)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.embedding = torch.nn.Embedding(config["vocab_size"], hidden)
        self.blocks = torch.nn.ModuleList(Block(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RmsNorm(hidden, config["rms_norm_eps"])
        self.head = linear(hidden, config["vocab_size"])
        half = hidden // config["num_attention_heads"] // 2
        angles = torch.outer(torch.arange(SEQ_LEN).float(),
                             config["rope_theta"] ** (-torch.arange(half).float() / half))
        self.cos, self.sin = angles.cos(), angles.sin()
        self.mask = torch.full((1, SEQ_LEN, SEQ_LEN), -math.inf).triu(1)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, self.head.out_features), labels.view(-1))


class TorchSide:
    def __init__(self, config, micro_batch):
        torch.manual_seed(0)
        self.model = Model(config)
        self.vocab = config["vocab_size"]
        self.micro_batch = micro_batch
        self.parameters = sum(p.numel() for p in self.model.parameters())
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() == 1]
        self.optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                            {"params": others, "weight_decay": 0.0}],
                                           lr=1e-3, betas=(0.9, 0.95), eps=1e-8, foreach=True)

    def step(self):
        tokens = torch.randint(self.vocab, (self.micro_batch, SEQ_LEN + 1))
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(tokens[:, :-1], tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return time.perf_counter() - begin, loss.item()


def ndplan_steps(program, steps, micro_batch, parameters):
    """Times and losses of steps 2 .. steps + 1."""
    out = subprocess.run([program, "--csv", "--repeats", "1", "--steps", str(steps), "--micro-batch", str(micro_batch)],
                         check=True, capture_output=True, text=True).stdout.splitlines()
    if f"# parameters {parameters}" not in out or f"# tokens {micro_batch * SEQ_LEN}" not in out:
        sys.exit(f"not the same model and batch: {out[:2]}, PyTorch has {parameters} parameters")
    rows = [line.split(",") for line in out if line[0].isdigit()]
    return [(float(seconds), float(loss)) for _, seconds, loss in rows[1:]]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])


def spread(values):
    ordered = sorted(values)
    last = len(ordered) - 1
    return f"{ordered[round(0.1 * last)]:.3f} to {ordered[round(0.9 * last)]:.3f}"


def blas_of_this_process():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1] for line in maps if "blas" in line}
    return ", ".join(sorted(os.path.realpath(f) for f in files)) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="step_rate of the build")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=3, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--cpu", type=int, default=0, help="the core that both run on")
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.cpu})  # the program inherits it
    torch.set_num_threads(1)
    with open(CONFIG, encoding="utf-8") as file:
        config = json.load(file)
    side = TorchSide(config, args.micro_batch)
    side.step()
    ndplan, pytorch, ratios = [], [], []
    for round_number in range(args.rounds):
        theirs = [side.step() for _ in range(args.steps)]
        ours = ndplan_steps(args.program, args.steps, args.micro_batch, side.parameters)
        pytorch += [seconds for seconds, _ in theirs]
        ndplan += [seconds for seconds, _ in ours]
        ratios.append(median(s for s, _ in ours) / median(s for s, _ in theirs))
        print(f"round {round_number + 1}: ndplan {median(s for s, _ in ours):.3f} s (loss {ours[0][1]:.3f}), PyTorch "
              f"{median(s for s, _ in theirs):.3f} s (loss {theirs[0][1]:.3f}), ratio {ratios[-1]:.3f}", flush=True)
    print(f"PyTorch {torch.__version__}, BLAS {blas_of_this_process()}")
    print(f"{side.parameters} parameters, {args.micro_batch} x {SEQ_LEN} tokens, fp32, one core, "
          f"{len(ndplan)} steps each")
    print(f"ndplan:  median {median(ndplan):.3f} s, 10 % to 90 %: {spread(ndplan)} s")
    print(f"PyTorch: median {median(pytorch):.3f} s, 10 % to 90 %: {spread(pytorch)} s")
    print(f"ndplan / PyTorch: {median(ndplan) / median(pytorch):.3f} (rounds: {min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
