"""If ptxas refuses a PTX text, the emulated device must refuse it; if both accept it, nothing may crash.

    python tests/emulator/ptxas.py                      against ptxas_verdicts.tsv: needs no ptxas
    python tests/emulator/ptxas.py --record             rewrites the verdicts of that file with this machine's ptxas
    python tests/emulator/ptxas.py --mutants 100000     tests mutants of real PTX against this machine's ptxas

A line of the file has a text and, for each of its variants, `r` if ptxas refuses it, `t` if both accept it, and `u`
if ptxas accepts it and the device does not, which UNSUPPORTED.md must say. The text is a module without its header, a
body of a kernel, or one instruction, whose variants have another operand each. A kind that ends with `-90a` is for
sm_90a.

A mutant is a kernel of tests/emulator/ptx with one or two changes of a kind: by token, operand, type, modifier or
structure. The same --seed makes the same mutants. It is a failure if ptxas refuses a mutant and the device accepts it,
or if there is a crash.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent.parent / "build" / "dev" / "tests" / "emulator" / "emulator_verdicts"
RECORD = HERE / "ptxas_verdicts.tsv"
TAKEN = "taken"

# These complete the texts of the record to modules.
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FRAME = (
    HEAD + ".global .align 16 .b32 g[4]; .shared .align 16 .b64 sh[4]; .const .b32 cc[4];\n"
    ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; st.param.b32 [r], %r1; ret; }\n"
    ".visible .entry k(.param .u64 p, .param .align 8 .b8 q[16])\n{\n"
    ".reg .pred %p<5>; .reg .b16 %h<5>; .reg .u16 %uh<5>; .reg .f16 %fh<5>; .reg .b32 %r<9>;\n"
    ".reg .u32 %u<5>; .reg .s32 %s<5>;\n"
    ".reg .f32 %f<9>; .reg .f16x2 %fx<5>; .reg .b64 %rd<9>; .reg .u64 %ud<5>; .reg .f64 %fd<5>; .reg .b128 %q<3>;\n"
    "TEXT\nL: ret;\n}\n"
)


def words(text: str) -> list[str]:
    return text.split()


SUBSTITUTES = words(
    "%p2 !%p2 %h2 %uh2 %fh2 %r2 -%r2 %u2 %s2 %f2 %fx2 %rd2 %ud2 %fd2 %q2 %tid.x %clock64 1 -1 0xfffffffff 1.5 "
    "0f3F800000 0d3FF0000000000000 g sh+4 L _ [%rd2] [%r2] [g] [sh] [p] {%r1,%r2} {%f1,%f2} {%h1,%h2} %r1|%p1 %none"
)

BODY = re.compile(r"^(?:\.visible |\.weak )?\.(entry|func)\b[^{;]*?\b(\w+) *\([^{;]*\{.*?^}\n", re.S | re.M)
TOKEN = re.compile(
    r"""//[^\n]*|"[^"\n]*"|0[fFdD][0-9a-fA-F]+|0x[0-9a-fA-F]+U?|\d+\.\d+|\d+U?|[%$\w]+(?:(?:\.|::)[\w:]+)*|\.[\w:]+|\s+|.""",
    re.S,
)
TYPES = words(
    ".pred .b8 .b16 .b32 .b64 .b128 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f16 .f16x2 .bf16 .bf16x2 .f32 .f64"
)
SPACES = words(".global .shared .local .param .const .reg")
SPECIALS = words("%tid.x %ntid.y %laneid %clock64 %lanemask_lt %envreg3 %nwarpid %tid %smid %dynamic_smem_size")
CONSTANTS = words("0 1 -1 7 0x7fffffff 0xffffffffff 0f3F800000 0d3FF0000000000000 1.5 -2.5 WARP_SZ 3U ~1 !0 (1+2)")


def split(text: str) -> list[str]:
    """Returns a module for each kernel of a text, with the functions that it reaches: the device checks no others."""
    head = BODY.sub("", text)
    bodies = {match[2]: match.group() for match in BODY.finditer(text)}
    names = re.compile(r"[\w$]+")
    made = []
    for match in BODY.finditer(text):
        if match[1] == "entry":
            reached, found = [], [match[2]]
            while found:
                name = found.pop()
                reached.append(name)
                found += {each for each in names.findall(bodies[name]) if each in bodies} - {*reached, *found}
            made.append(head + "".join(bodies[name] for name in reversed(reached)))
    return made


def kernels() -> list[str]:
    texts = [text for path in sorted((HERE / "ptx").glob("*.ptx")) for text in split(path.read_text(encoding="utf-8"))]
    return [re.sub(r"^\s*//.*\n", "", text, flags=re.M) for text in texts if len(text) < 20000]


class Mutator:
    """Changes one text, using tokens of all texts."""

    def __init__(self, texts: list[str]) -> None:
        self.opcodes, self.modifiers = set(), set(TYPES)
        for text in texts:
            for opcode in re.findall(r"^\s*(?:@!?%p\d+ )?([a-z][\w.:]*)\b[^:;\n]*;", text, re.M):
                self.opcodes.add(opcode)
                self.modifiers.update(f".{part}" for part in opcode.split(".")[1:])
        self.opcodes, self.modifiers = sorted(self.opcodes), sorted(self.modifiers)

    def mutant(self, text: str, chance: random.Random) -> tuple[str, str]:
        kind = chance.choice((self.token, self.operand, self.operand, self.type, self.modifier, self.structure))
        for _ in range(chance.choice((1, 1, 1, 2))):
            text = kind(text, chance)
        return kind.__name__, text

    def token(self, text: str, chance: random.Random) -> str:
        tokens = TOKEN.findall(text)
        places = [i for i, token in enumerate(tokens) if not token.isspace()]
        at, other = chance.choice(places), chance.choice(places)
        match chance.randrange(5):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] += " " + tokens[at]
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = tokens[other]
            case _:
                tokens[at] += " " + tokens[other]
        return "".join(tokens)

    @staticmethod
    def statements(text: str) -> list[re.Match[str]]:
        return list(re.finditer(r"^(\s*(?:@!?%p\d+ )?)([a-z][\w.:]*)([ \t]*)([^:;\n]*);$", text, re.M))

    def instruction(self, text: str, chance: random.Random) -> re.Match[str] | None:
        found = self.statements(text)
        return chance.choice(found) if found else None

    def operand(self, text: str, chance: random.Random) -> str:
        match = self.instruction(text, chance)
        if match is None:
            return text
        operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|[^,\s][^,]*", match[4])
        declared = re.findall(r"\.reg \.\w+ +\t?(%\w+)<", text) or ["%r"]
        others = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s][^,]*", chance.choice(self.statements(text))[4]) or ["%r1"]
        labels = re.findall(r"^(\$\w+):", text, re.M) or ["$L"]
        new = chance.choice(
            (
                lambda: chance.choice(declared) + str(chance.choice((1, 1, 2, 99999))),
                lambda: chance.choice(declared) + "1",
                lambda: chance.choice(others),
                lambda: chance.choice(CONSTANTS),
                lambda: chance.choice(SPECIALS),
                lambda: chance.choice(labels),
                lambda: "_",
                lambda: f"[{chance.choice(declared)}1{chance.choice(('', '+4', '+-8', '+1'))}]",
                lambda: (
                    "{" + ", ".join(chance.choice(declared) + "1" for _ in range(chance.choice((1, 2, 3, 4)))) + "}"
                ),
                lambda: chance.choice(declared) + "1|" + chance.choice(declared) + "2",
                lambda: chance.choice("-!~") + chance.choice(declared) + "1",
            )
        )()
        if not operands:
            operands = [new]
        else:
            at = chance.randrange(len(operands))
            match chance.randrange(8):
                case 0:
                    del operands[at]
                case 1:
                    operands.insert(at, new)
                case 2:
                    other = chance.randrange(len(operands))
                    operands[at], operands[other] = operands[other], operands[at]
                case _:
                    operands[at] = new
        return text[: match.start(4)] + ", ".join(operands) + text[match.end(4) :]

    def type(self, text: str, chance: random.Random) -> str:
        found = list(re.finditer("|".join(rf"\{each}\b" for each in TYPES), text))
        match = chance.choice(found)
        return text[: match.start()] + chance.choice(TYPES) + text[match.end() :]

    def modifier(self, text: str, chance: random.Random) -> str:
        match = self.instruction(text, chance)
        if match is None:
            return text
        parts = re.findall(r"^\w+|\.[^.]+", match[2])
        at = chance.randrange(1, len(parts)) if len(parts) > 1 else 1
        match chance.randrange(5):
            case 0:
                parts[at : at + 1] = []
            case 1:
                parts.insert(at, chance.choice(self.modifiers))
            case 2:
                parts = [chance.choice(self.opcodes)]
            case 3:
                other = chance.randrange(1, len(parts)) if len(parts) > 1 else 0
                parts[min(at, len(parts) - 1)], parts[other] = parts[other], parts[min(at, len(parts) - 1)]
            case _:
                parts[at : at + 1] = [chance.choice(self.modifiers)]
        return text[: match.start(2)] + "".join(parts) + text[match.end(2) :]

    def structure(self, text: str, chance: random.Random) -> str:
        lines = text.splitlines(keepends=True)
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines.insert(other, lines.pop(at))
            case 3:
                lines.insert(at, chance.choice(("{\n", "}\n", "{\n}\n", "ret;\n", ";\n", "(\n", "$L__BB0_1:\n")))
            case 4:
                lines[at] = re.sub(r"<\d+>", f"<{chance.choice((0, 1, 2, 5))}>", lines[at])
            case 5:
                space = chance.choice(SPACES)
                lines[at] = re.sub(r"\.(global|shared|local|param|const|reg)\b", space, lines[at])
            case _:
                lines[at] = re.sub(r"\b\d+\b", str(chance.choice((0, 1, 3, 8, 16, 64, 1 << 33))), lines[at])
        return "".join(lines)


def verdicts_of_device(texts: list[str], program: Path) -> list[str]:
    """Returns one verdict for each text. A crash is the verdict of its text, and the others continue."""
    made: list[str] = []
    while len(made) < len(texts):
        given = "".join(text + "\0" for text in texts[len(made) :])
        done = subprocess.run([program], input=given.encode(), capture_output=True, timeout=3600)
        made += done.stdout.decode(errors="replace").splitlines()
        if done.returncode != 0:
            message = re.search(r"ERROR: (.*)|runtime error: (.*)", done.stderr.decode(errors="replace"))
            made.append(f"CRASH {done.returncode} {message.group() if message else ''}")
    return made


def verdict_of_ptxas(text: str, ptxas: str, directory: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir=directory, encoding="utf-8") as file:
        file.write(text)
        file.flush()
        target = re.search(r"\.target\s+(sm_\w+)", text)
        # Errors do not depend on optimisation, so it is off.
        command = [ptxas, f"-arch={target[1] if target else 'sm_80'}", "-O0", "-o", "/dev/null", file.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
        except subprocess.TimeoutExpired:
            return "TIMEOUT"
    if done.returncode == 0:
        return TAKEN
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        if re.search(r"(error|fatal) *:", line) and "aborted due to errors" not in line:
            return line.partition(", ")[2] or line
    return f"CRASH {done.returncode}"


def variants(kind: str, text: str) -> list[str]:
    """Returns the whole modules that a line of the record stands for."""
    if kind.endswith("-90a"):
        return [each.replace(".target sm_90\n", ".target sm_90a\n") for each in variants(kind[:-4], text)]
    if kind == "module":
        return [HEAD + text + "\n"]
    texts = [text]
    if kind == "operands":
        name, _, rest = text.partition(" ")
        operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s][^,]*", rest.rstrip(";"))
        for at in range(len(operands)):
            for new in SUBSTITUTES:
                texts.append(f"{name} {', '.join([*operands[:at], new, *operands[at + 1 :]])};")
        texts += [f"{name} {', '.join(operands[:-1])};", f"{name} {', '.join([*operands, operands[-1]])};"]
    return [FRAME.replace("TEXT", each) for each in texts]


def recorded() -> list[tuple[str, str, str]]:
    """Returns each line of the record as (kind, text, verdicts)."""
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return [(kind, text, verdicts) for kind, text, verdicts in (line.split("\t") for line in lines)]


def check_record(program: Path) -> int:
    wrong = count = 0
    record = recorded()
    texts = [variants(kind, text) for kind, text, _ in record]
    ours = iter(verdicts_of_device([each for group in texts for each in group], program))
    for (kind, text, verdicts), group in zip(record, texts, strict=True):
        for number, verdict in enumerate(verdicts):
            count += 1
            mine = next(ours)
            if mine.startswith("CRASH") or (mine == TAKEN) != (verdict == "t"):
                wrong += 1
                line = group[number].splitlines()[-3] if kind != "module" else text
                print(f"{'ptxas refuses' if verdict == 'r' else 'ptxas takes'} {line!r}; the device: {mine}")
        assert len(verdicts) == len(group), f"run --record: {text}"
    print(f"{count} texts with a recorded verdict, {wrong} wrong")
    return wrong


def write_record(program: Path, ptxas: str) -> None:
    record = recorded()
    texts = [variants(kind, text) for kind, text, _ in record]
    every = [each for group in texts for each in group]
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda each: verdict_of_ptxas(each, ptxas, directory), every))
    letters = iter(
        "r" if judged != TAKEN else "t" if mine == TAKEN else "u"
        for judged, mine in zip(theirs, verdicts_of_device(every, program), strict=True)
    )
    lines = [
        f"{kind}\t{text}\t{''.join(next(letters) for _ in group)}"
        for (kind, text, _), group in zip(record, texts, strict=True)
    ]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


def compare(texts: list[tuple[str, str]], program: Path, ptxas: str, keep: Path | None) -> int:
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(2) as pool:
        judged = pool.map(lambda each: verdict_of_ptxas(each[1], ptxas, directory), texts)
        ours = verdicts_of_device([text for _, text in texts], program)
        agreed, found = 0, collections.defaultdict(list)
        for (kind, text), theirs, mine in zip(texts, judged, ours, strict=True):
            if mine.startswith("CRASH"):
                found["1 crash", mine].append((kind, text, mine))
            elif theirs.startswith(("CRASH", "TIMEOUT")) or (theirs == TAKEN) == (mine == TAKEN):
                agreed += 1
            elif mine == TAKEN:
                found["2 ptxas refuses, taken here", re.sub(r"line \d+; |'[^']*'", "_", theirs)].append(
                    (kind, text, theirs)
                )
            else:
                found["3 ptxas takes, refused here", re.sub(r"line \d+:? ?|'[^']*'|[\d%]\w*", "_", mine)].append(
                    (kind, text, mine)
                )
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir(parents=True)
    for number, ((what, reason), examples) in enumerate(
        sorted(found.items(), key=lambda item: (item[0][0], -len(item[1])))
    ):
        print(f"{what}: {len(examples):6} {reason}")
        if keep is not None:
            for index, (kind, text, verdict) in enumerate(examples[:5]):
                (keep / f"{number}_{index}.ptx").write_text(f"{text}// {kind}: {verdict}\n", encoding="utf-8")
    counts = collections.Counter(what for (what, _), examples in found.items() for _ in examples)
    print(f"{len(texts)} mutants: {agreed} agreed; {dict(sorted(counts.items()))}")
    return sum(count for what, count in counts.items() if what[0] in "12")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("--mutants", type=int)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for five examples of each disagreement")
    arguments = parser.parse_args()
    if not arguments.mutants and not arguments.record:
        return 1 if check_record(arguments.program) else 0
    if not arguments.ptxas:
        print("ptxas was not found: install a CUDA toolkit, or name it with --ptxas")
        return 77
    if arguments.record:
        write_record(arguments.program, arguments.ptxas)
        return 0
    texts = kernels()
    mutator, chance = Mutator(texts), random.Random(arguments.seed)
    mutants = [mutator.mutant(chance.choice(texts), chance) for _ in range(arguments.mutants)]
    return 1 if compare(mutants, arguments.program, arguments.ptxas, arguments.keep) else 0


if __name__ == "__main__":
    sys.exit(main())
