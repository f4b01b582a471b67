// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// In which row a kernel reads and writes is in a list, at a place that a loop of the host counts:
// the kernel gets the counter and looks it up itself.

// CHECK:       gpu.func @loop1_copy({{.*}}, %[[T:.*]]: index,
// CHECK:         %[[PLACE:.*]] = affine.apply {{.*}}(%[[T]])
// CHECK:         memref.load %{{.*}}[%[[PLACE]]] : memref<6xi32>
// CHECK:         memref.subview
// CHECK:         memref.extract_strided_metadata
// CHECK:       func.func @main
// CHECK-NOT:     memref.load
// CHECK-NOT:     memref.subview
// CHECK:         affine.for %[[I:.*]] = 0 to 6
// CHECK:           gpu.launch_func @kernels::@loop1_copy {{.*}} args({{.*}}memref<6xi32>, %[[I]] : index
func.func @main(%list: memref<6xi32>, %a: memref<9x4x8xf32>, %b: memref<32xf32>) {
  affine.for %t = 0 to 6 {
    %place = affine.apply affine_map<(d0) -> (-d0 + 5)>(%t)
    %n = memref.load %list[%place] : memref<6xi32>
    %i = arith.index_cast %n : i32 to index
    %row = memref.subview %a[%i, 0, 0] [1, 4, 8] [1, 1, 1] : memref<9x4x8xf32> to memref<1x4x8xf32, strided<[32, 8, 1], offset: ?>>
    %base, %offset, %s:3, %d:3 = memref.extract_strided_metadata %row : memref<1x4x8xf32, strided<[32, 8, 1], offset: ?>> -> memref<f32>, index, index, index, index, index, index, index
    %flat = memref.reinterpret_cast %row to offset: [%offset], sizes: [32], strides: [1] : memref<1x4x8xf32, strided<[32, 8, 1], offset: ?>> to memref<32xf32, strided<[1], offset: ?>>
    affine.for %k = 0 to 32 {
      %x = affine.load %flat[%k] : memref<32xf32, strided<[1], offset: ?>>
      affine.store %x, %b[%k] : memref<32xf32>
    } {polyblocks.kernel = "loop1_copy", polyblocks.kind = "copy", polyblocks.sources = []}
  } {polyblocks.region = "loop1"}
  return
}
