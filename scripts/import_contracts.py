"""Import contracts that import-linter does not bring: see .importlinter."""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class StdlibOnly(Contract):
    """The source modules import, of what is outside this project, the standard library alone.

    A ``forbidden`` contract would have to list every package that could ever be installed. Only
    direct imports are looked at: what a source module reaches through another module of this
    project is the matter of the layers.
    """

    source_modules = fields.SetField(subfield=fields.ModuleField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        roots = {module.split(".")[0] for module in graph.modules if not graph.is_module_squashed(module)}
        allowed = roots | sys.stdlib_module_names
        found: list[tuple[str, str]] = []
        for source in sorted(module.name for module in self.source_modules):
            if source not in graph.modules:
                continue
            for importer in sorted({source} | graph.find_descendants(source)):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if imported.split(".")[0] not in allowed:
                        found.append((importer, imported))
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["found"]:
            output.print_error(f"{importer} imports {imported}, which is not in the standard library")


class NoCircles(Contract):
    """No modules of this project import each other in a circle, imports for type checkers included.

    Modules of a circle can only be understood, moved and tested together.
    """

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        own = {module for module in graph.modules if not graph.is_module_squashed(module)}
        imports = {module: graph.find_modules_directly_imported_by(module) & own for module in sorted(own)}
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            # Each is imported by the one that follows it.
            return ContractCheck(kept=False, metadata={"circle": error.args[1][::-1]})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        output.print_error(f"a circle of imports: {' -> '.join(check.metadata['circle'])}")
