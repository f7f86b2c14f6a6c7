"""What the doctor finds: measurements with what they mean, and the verdict."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Diagnosis", "Finding"]


_SHARES = {  # shown in percent in the table
    *("estimated_purity", "never_listed", "true_purity", "chance_purity", "possible_purity", "above_chance", "room"),
    *("recall@1", "recall@10", "map@r", "possible_map@r", "refined_recall@1", "refined_recall@10", "refined_map@r"),
}


@dataclass(frozen=True)
class Finding:
    """One measurement: a number, or a list of examples, and what it means."""

    name: str
    value: float | int | list[Any] | None
    """None where there is nothing to measure."""
    note: str = ""
    """What it means, in a few words."""

    def __str__(self) -> str:
        if self.value is None:
            return "not measured"
        if isinstance(self.value, list):
            return str(len(self.value))
        if self.name in _SHARES:
            return f"{100 * self.value:.1f} %"
        return f"{self.value:.3f}" if isinstance(self.value, float) else f"{self.value:,}"


@dataclass(frozen=True)
class Diagnosis:
    """The findings, the protocol they were measured under, and the verdict in one line."""

    protocol: dict[str, Any]
    """How it was measured."""
    findings: tuple[Finding, ...]
    """Everything measured, in the order of the table."""
    verdict: str
    """Whether refinement will help, the main reason and what to do next."""

    def __repr__(self) -> str:
        findings = f"{len(self.findings)} findings of {self.protocol['items']:,} items"
        return f"Diagnosis({self.verdict.partition(':')[0]}, {findings})"

    def __str__(self) -> str:
        return f"{self.table()}\n{self.verdict}"

    @property
    def metrics(self) -> dict[str, float]:
        """The findings that are numbers."""
        return {found.name: found.value for found in self.findings if isinstance(found.value, int | float)}

    def document(self) -> dict[str, Any]:
        """Give the diagnosis as `--json` prints it."""
        findings = [asdict(found) for found in self.findings]
        return {"protocol": self.protocol, "metrics": self.metrics, "findings": findings, "verdict": self.verdict}

    def table(self) -> str:
        """Lay out a line per finding."""
        names = [found.name.replace("_", " ") for found in self.findings]
        width, digits = max(map(len, names)), max(len(str(found)) for found in self.findings)
        lines = zip(names, self.findings, strict=True)
        return "\n".join(f"{name:{width}}  {found!s:>{digits}}  {found.note}".rstrip() for name, found in lines)
