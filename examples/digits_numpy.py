"""Train a small network on scikit-learn's digits with numpy, data-parallel over MPI ranks.

    mpirun -n 4 python examples/digits_numpy.py
    mpirun -n 4 python examples/digits_numpy.py --check-single

Every rank holds all parameters and takes its slice of each global batch; the gradients of the
slices are averaged with one ``all_reduce``, so all ranks make the same step.

``--check-single`` trains again in one process with whole batches, and compares the losses. The two
runs differ only in the order in which the BATCH products of a gradient are added up, in float64
with u = 2**-53. Each order is within BATCH u of the exact sum, relative to the products' sizes
(Higham, Accuracy and Stability, 4.2), which here are below 1 in the mean: a step's two gradients
differ by at most 2 BATCH u, and with momentum they move the parameters apart by RATE / (1 -
MOMENTUM) times that. What it does to the losses was measured: changing all first parameters by
1e-9 changed them by at most 2.3e-9; GROWTH leaves a margin. So the losses may differ by
``steps RATE / (1 - MOMENTUM) 2 BATCH u GROWTH``, 2.6e-11, while averaging the slices' means, which
is wrong for uneven slices, changes them by 5e-5 with 2 ranks and by 6e-4 with 5.
"""

import argparse
import hashlib
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # ranks share the cores

import numpy as np
from sklearn.datasets import load_digits

import rawcoll

HIDDEN, BATCH, EPOCHS, RATE, MOMENTUM = 64, 96, 8, 0.1, 0.9
SHAPES = {"w1": (64, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 10), "b2": (10,)}
GROWTH = 10


def load():
    """1437 images to train with and 360 to test with, in a fixed random order."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order] / 16, y[order]
    return x[:1437], y[:1437], x[1437:], y[1437:]


def views(flat):
    """The parameters (or gradients) as views of one flat array."""
    sizes = [int(np.prod(shape)) for shape in SHAPES.values()]
    parts = np.split(flat, np.cumsum(sizes))  # what is left over is the loss
    return {name: part.reshape(SHAPES[name]) for name, part in zip(SHAPES, parts, strict=False)}


def first_parameters():
    """Normal weights, scaled by the inputs of each layer, and biases of zero."""
    random = np.random.default_rng(1)
    weights = {name: random.standard_normal(shape) for name, shape in SHAPES.items()}
    scales = {"w1": np.sqrt(2 / 64), "b1": 0, "w2": np.sqrt(2 / HIDDEN), "b2": 0}
    return np.concatenate([(weights[name] * scales[name]).ravel() for name in SHAPES])


def forward(p, x):
    """Hidden layer and logarithms of the classes' probabilities."""
    hidden = np.maximum(x @ p["w1"] + p["b1"], 0)
    scores = hidden @ p["w2"] + p["b2"]
    scores -= scores.max(axis=1, keepdims=True)
    return hidden, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def backward(p, g, x, y):
    """The gradients of the samples' summed loss into ``g``; returns that loss."""
    hidden, logs = forward(p, x)
    rows = np.arange(len(y))
    errors = np.exp(logs)
    errors[rows, y] -= 1
    hidden_errors = (errors @ p["w2"].T) * (hidden > 0)
    g["w2"][:], g["b2"][:] = hidden.T @ errors, errors.sum(axis=0)
    g["w1"][:], g["b1"][:] = x.T @ hidden_errors, hidden_errors.sum(axis=0)
    return -logs[rows, y].sum()


def train(rank, nranks, parameters, average, say):
    """Train in place; returns the mean loss of each epoch."""
    x, y, test_x, test_y = load()
    # One flat array: a step is one all_reduce, not one a parameter, and the loss travels along.
    gradient, velocity = np.zeros(len(parameters) + 1), np.zeros_like(parameters)
    p, g, losses = views(parameters), views(gradient), []
    for epoch in range(EPOCHS):
        order = np.random.default_rng([2, epoch]).permutation(len(x))  # the same on every rank
        start, loss = time.perf_counter(), 0.0
        for first in range(0, len(x), BATCH):
            batch = order[first : first + BATCH]  # the last one is smaller
            own = np.array_split(batch, nranks)[rank]  # slices differ in size, and may be empty
            gradient[-1] = backward(p, g, x[own], y[own])
            # all_reduce divides the sum over ranks by nranks, but a batch's gradient is the sum
            # over its samples divided by their number: right for slices of any sizes.
            gradient *= nranks / len(batch)
            average(gradient)
            velocity *= MOMENTUM
            velocity -= RATE * gradient[:-1]
            parameters += velocity
            loss += gradient[-1] * len(batch)
        step_ms = (time.perf_counter() - start) / -(-len(x) // BATCH) * 1e3
        losses.append(loss / len(x))
        accuracy = (forward(p, test_x)[1].argmax(axis=1) == test_y).mean()
        say(f"{epoch + 1:5}  {losses[-1]:.15f}  {accuracy:8.4f}  {step_ms:7.3f}")
    return losses


def nothing(_):
    """In place of ``average`` and ``say`` where there is nothing to do."""


def check_single(losses, say):
    """Compare with one process that computes whole batches."""
    alone = train(0, 1, first_parameters(), nothing, nothing)
    steps = EPOCHS * -(-1437 // BATCH)
    tolerance = steps * RATE / (1 - MOMENTUM) * 2 * BATCH * 2.0**-53 * GROWTH
    worst = max(abs(a - b) for a, b in zip(losses, alone, strict=True))
    say(f"largest difference from one process: {worst:.1e}, tolerance {tolerance:.1e}")
    if worst > tolerance:
        raise SystemExit("the losses differ")


def main():
    """Train on all ranks; rank 0 reports."""
    parser = argparse.ArgumentParser(description="Data-parallel training on digits.")
    parser.add_argument("--check-single", action="store_true", help="compare with one process")
    arguments = parser.parse_args()
    with rawcoll.init() as comm:
        say = print if comm.rank == 0 else nothing
        parameters = first_parameters()
        if comm.rank != 0:
            parameters[:] = 0  # what another rank has does not matter: rank 0's are sent to all
        comm.broadcast(parameters, root=0)
        say(f"{comm.nranks} ranks, batches of {BATCH}\nepoch               loss  accuracy  ms/step")

        def average(gradient):
            comm.all_reduce(gradient, op="avg")

        losses = train(comm.rank, comm.nranks, parameters, average, say)
        digests = comm.all_gather(np.frombuffer(hashlib.sha256(parameters).digest(), np.uint8))
        same = bool((digests == digests[0]).all())
        say(f"parameters {bytes(digests[0]).hex()[:16]}, the same bits on all ranks: {same}")
        if arguments.check_single and comm.rank == 0:
            check_single(losses, say)
        if not same:
            raise SystemExit("the ranks' parameters differ")


if __name__ == "__main__":
    main()
