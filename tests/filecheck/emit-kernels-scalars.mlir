// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A place that memory holds: the kernel loads it itself, and nothing is left for the host.

// CHECK:       gpu.func @kernel(
// CHECK:         %[[N:.*]] = memref.load %{{.*}}[] : memref<i32>
// CHECK:         %[[AT:.*]] = arith.index_cast %[[N]]
// CHECK:         memref.subview %{{.*}}[%[[AT]], 0]
// CHECK:       func.func @main
// CHECK-NOT:     memref.load
// CHECK:         gpu.launch_func @kernels::@kernel
// CHECK-SAME:      args({{.*}}memref<i32>
func.func @main(%a: memref<9x64xf32>, %at: memref<i32>, %b: memref<64xf32>) {
  %n = memref.load %at[] : memref<i32>
  %i = arith.index_cast %n : i32 to index
  %row = memref.subview %a[%i, 0] [1, 64] [1, 1] : memref<9x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  affine.for %k = 0 to 64 {
    %x = affine.load %row[%k] : memref<64xf32, strided<[1], offset: ?>>
    affine.store %x, %b[%k] : memref<64xf32>
  }
  return
}
