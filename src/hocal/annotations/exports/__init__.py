"""Exports of annotation tools to tables of judgements."""

from hocal.annotations.exports.files import ExportFile
from hocal.annotations.exports.protocol import AnnotationTool, Response
from hocal.annotations.exports.reading import read_annotations
from hocal.annotations.exports.registry import known_tools, register_tool
from hocal.annotations.exports.result import Annotations

__all__ = [
    "AnnotationTool",
    "Annotations",
    "ExportFile",
    "Response",
    "known_tools",
    "read_annotations",
    "register_tool",
]
