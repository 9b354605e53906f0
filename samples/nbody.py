"""Two galaxies meet: 512 stars attract each other, and a GIF shows how.

    python samples/nbody.py [--out DIRECTORY]

The classic tiled kernel: a block loads the stars in tiles into shared memory, and every thread adds up the pull on one
star. The step is a leapfrog (drift, kick, drift). NumPy integrates the same stars in float64; positions and the drift
of the energy are compared with it. Writes an animated GIF.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import bascule

KERNELS = r"""
constexpr int TILE = 128;  // stars in shared memory at a time, and threads of a block

__global__ void drift(float4* stars, const float4* velocities, float time, int n) {
    for (auto i : bascule::grid_stride(n)) {
        stars[i].x += time * velocities[i].x;
        stars[i].y += time * velocities[i].y;
        stars[i].z += time * velocities[i].z;
    }
}

__global__ void kick(const float4* stars, float4* velocities, float time, float softening, int n) {
    __shared__ float4 tile[TILE];
    const int i = blockIdx.x * TILE + threadIdx.x;
    const float4 here = i < n ? stars[i] : float4{};
    float3 pull{};
    for (int first = 0; first < n; first += TILE) {
        const int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? stars[j] : float4{};  // a mass of 0 pulls nobody
        __syncthreads();
        for (const float4& other : tile) {
            const float3 to{other.x - here.x, other.y - here.y, other.z - here.z};
            const float inverse = rsqrtf(to.x * to.x + to.y * to.y + to.z * to.z + softening);
            const float strength = other.w * inverse * inverse * inverse;  // .w is the mass
            pull.x += strength * to.x;
            pull.y += strength * to.y;
            pull.z += strength * to.z;
        }
        __syncthreads();  // before the next tile replaces this one
    }
    if (i >= n) return;
    velocities[i].x += time * pull.x;
    velocities[i].y += time * pull.y;
    velocities[i].z += time * pull.z;
}
"""
TILE, STARS, STEPS, FRAMES, STEP, SOFTENING = 128, 512, 240, 40, 0.0125, 0.02


def galaxy(rng, centre, motion, tilt):
    """Positions with masses, and velocities, both of shape (STARS / 2, 4): a disc around a star of mass 1."""
    stars, velocities = np.zeros((2, STARS // 2, 4))
    radius, angle = 0.15 + 0.85 * np.sqrt(rng.random(STARS // 2)), 2 * np.pi * rng.random(STARS // 2)
    speed = radius / (radius**2 + SOFTENING) ** 0.75  # of a circle around that star
    plane = np.array([[1, 0, 0], [0, np.cos(tilt), np.sin(tilt)]])
    stars[:, :3] = (radius * np.array([np.cos(angle), np.sin(angle)])).T @ plane
    velocities[:, :3] = (speed * np.array([-np.sin(angle), np.cos(angle)])).T @ plane
    stars[:, 3] = 1e-4
    stars[0], velocities[0] = (0, 0, 0, 1), 0
    return stars + np.array([*centre, 0]), velocities + np.array([*motion, 0])


def on_the_device(stars, velocities):
    """Positions with masses at each frame, and the last velocities."""
    module = bascule.compile(KERNELS)
    stars, velocities = bascule.to_device(stars), bascule.to_device(velocities)
    blocks = -(-STARS // TILE)
    # Arguments are checked once, for many launches.
    drift = module.drift[blocks, TILE].bind(stars, velocities, STEP / 2, STARS)
    kick = module.kick[blocks, TILE].bind(stars, velocities, STEP, SOFTENING, STARS)
    frames = [stars.copy_to_host()]
    for step in range(1, STEPS + 1):
        drift()
        kick()
        drift()
        if step % (STEPS // FRAMES) == 0:
            frames.append(stars.copy_to_host())
    return frames, velocities.copy_to_host()


def distances(stars):
    """Vectors from each star to each other one, and their softened lengths."""
    to = stars[None, :, :3] - stars[:, None, :3]
    return to, np.sqrt((to**2).sum(-1) + SOFTENING)


def by_numpy(stars, velocities):
    stars, velocities = stars.astype("f8"), velocities.astype("f8")
    for _ in range(STEPS):
        stars[:, :3] += STEP / 2 * velocities[:, :3]
        to, length = distances(stars)
        velocities[:, :3] += STEP * np.einsum("ijk,ij->ik", to, stars[:, 3] / length**3)
        stars[:, :3] += STEP / 2 * velocities[:, :3]
    return stars, velocities


def energy(stars, velocities):
    stars, mass = stars.astype("f8"), stars[:, 3].astype("f8")
    pairs = np.outer(mass, mass) / distances(stars)[1]
    return 0.5 * (mass * (velocities[:, :3].astype("f8") ** 2).sum(1)).sum() - np.triu(pairs, 1).sum()


def drawn(stars, size=320, reach=2.7):
    """The stars from above: one galaxy orange, the other blue."""
    picture = np.zeros((size, size, 3), np.uint8)
    for star, (x, y) in enumerate(((stars[:, :2] / reach + 1) * size / 2).astype(int).clip(0, size - 5)):
        extent = 5 if stars[star, 3] == 1 else 2
        picture[y : y + extent, x : x + extent] = (255, 170, 60) if star < STARS // 2 else (110, 170, 255)
    return Image.fromarray(picture)


def main():
    parser = argparse.ArgumentParser(description="Two galaxies meet.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the GIF (default: ./out)")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    pair = galaxy(rng, (-1.5, -0.5, 0), (0.5, 0.1, 0), 0.3), galaxy(rng, (1.5, 0.5, 0), (-0.5, -0.1, 0), 1.2)
    stars, velocities = (np.vstack(parts).astype("f4") for parts in zip(*pair, strict=True))

    print(f"device: {bascule.current_device()!r}")
    frames, last_velocities = on_the_device(stars, velocities)
    pictures = [drawn(frame) for frame in frames]
    options.out.mkdir(parents=True, exist_ok=True)
    gif = options.out.resolve() / "galaxies.gif"
    pictures[0].save(gif, save_all=True, append_images=pictures[1:], duration=60, loop=0)
    print(f"{STARS} stars, {STEPS} steps, {len(frames)} frames: {gif}")

    expected = by_numpy(stars, velocities)
    start = energy(stars, velocities)
    drifts = [energy(*state) / start - 1 for state in ((frames[-1], last_velocities), expected)]
    print(f"the energy changed by {drifts[0]:.1e} of its value on the device, by {drifts[1]:.1e} in NumPy")
    errors = {"positions": np.abs(frames[-1] - expected[0]).max(), "energy": abs(drifts[0] - drifts[1])}
    limits = {"positions": 1e-2, "energy": 1e-4}
    for name, error in errors.items():
        verdict = "ok" if error <= limits[name] else "WRONG"  # NaN is wrong
        print(f"{verdict:6}{name:10} differs from NumPy by at most {error:.1e} (limit {limits[name]:g})")
    if not all(errors[name] <= limits[name] for name in errors):
        sys.exit("nbody: the stars differ from NumPy's; see the lines marked WRONG")


if __name__ == "__main__":
    main()
