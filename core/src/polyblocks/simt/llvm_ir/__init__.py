"""Reads optimized LLVM IR back into MLIR's LLVM dialect, for the simulator."""
