// PASSES: map-parallelism
// TARGET: gpu
//
// What shares out iterations among the threads of a team leaves a GPU's nests alone.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     affine.parallel
// CHECK:         affine.for %{{.*}} = 0 to 1048576
func.func @main(%a: memref<1048576xf32>) {
  affine.for %i = 0 to 1048576 {
    %x = affine.load %a[%i] : memref<1048576xf32>
    %y = arith.negf %x : f32
    affine.store %y, %a[%i] : memref<1048576xf32>
  }
  return
}
