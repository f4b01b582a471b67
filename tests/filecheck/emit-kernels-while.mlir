// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// How often the loop runs is in memory: one block runs all of it. Its threads wait before a number
// is changed that others may still load, and after it.

// CHECK:       gpu.func @loop1(
// CHECK-SAME:    known_grid_size = array<i32: 1, 1, 1>
// CHECK:         scf.while
// CHECK:           memref.load %{{.*}}[] : memref<i32>
// CHECK:           scf.condition
// CHECK:         gpu.barrier
// CHECK:           memref.store {{.*}} : memref<64xf32>
// CHECK:         gpu.barrier
// CHECK:           memref.store {{.*}} : memref<i32>
// CHECK:         gpu.barrier
// CHECK:         scf.yield
// CHECK:       func.func @main
// CHECK-NOT:     scf.while
// CHECK:         gpu.launch_func @kernels::@loop1
func.func @main(%left: memref<i32>, %a: memref<64xf32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2.0 : f32
  scf.while : () -> () {
    %n = memref.load %left[] : memref<i32>
    %more = arith.cmpi sgt, %n, %zero : i32
    scf.condition(%more)
  } do {
    affine.for %i = 0 to 64 {
      %x = affine.load %a[%i] : memref<64xf32>
      %y = arith.mulf %x, %two : f32
      affine.store %y, %a[%i] : memref<64xf32>
    }
    %n = affine.load %left[] : memref<i32>
    %m = arith.subi %n, %one : i32
    affine.store %m, %left[] : memref<i32>
    scf.yield
  } attributes {polyblocks.region = "loop1"}
  return
}
