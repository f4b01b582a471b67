// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// Numbers that memory holds, and kernels in a loop of the host: one was there before the loop, one
// the kernel before has stored. The kernels load both, and nothing is left for the host.

// CHECK:       gpu.func @loop1_branch1(
// CHECK:         memref.load %{{.*}}[] : memref<f32>
// CHECK:         arith.cmpf
// CHECK:         scf.if
// CHECK:       func.func @main
// CHECK-NOT:     memref.load
// CHECK:         affine.for
// CHECK:           gpu.launch_func @kernels::@loop1_copy blocks {{.*}} args({{.*}}memref<i32>
// CHECK-NOT:       memref.load
// CHECK-NOT:       arith.cmpf
// CHECK:           gpu.launch_func @kernels::@loop1_branch1 blocks {{.*}} args({{.*}}memref<f32>
func.func @main(%at: memref<i32>, %a: memref<9x64xf32>, %b: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %n = memref.load %at[] : memref<i32>
  %i = arith.index_cast %n : i32 to index
  %row = memref.subview %a[%i, 0] [1, 64] [1, 1] : memref<9x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  affine.for %t = 0 to 5 {
    %s = memref.alloc() : memref<f32>
    %x = affine.load %row[%t] : memref<64xf32, strided<[1], offset: ?>>
    affine.store %x, %s[] : memref<f32>
    %y = memref.load %s[] : memref<f32>
    %p = arith.cmpf ogt, %y, %zero : f32
    scf.if %p {
      affine.for %k = 0 to 64 {
        affine.store %zero, %b[%k] : memref<64xf32>
      }
    } {polyblocks.region = "loop1_branch1"}
  } {polyblocks.region = "loop1"}
  return
}
