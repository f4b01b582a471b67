"""Reads PTX into MLIR's LLVM dialect, for the simulator."""
