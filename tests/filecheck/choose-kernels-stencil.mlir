// PASSES: classify-nests,fuse-tiles,choose-kernels
// TARGET: gpu
//
// The schedule of two stencils in one tile: a block for each tile. What one sweep stores the next
// one reads at its neighbours', so both buffers live in shared memory, and the block waits before
// each loop that reads one.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloca()
// CHECK:       polyblocks.schedule = {barriers = [6, 12], copies = [], distributed = [
// CHECK-SAME:    {lead = 0 : i64, loop = 2 : i64, order = [2, 3], pitch = 0 : i64, width = 1 : i64},
// CHECK-SAME:    {lead = 0 : i64, loop = 6 : i64, order = [6, 7], pitch = 0 : i64, width = 1 : i64},
// CHECK-SAME:    {lead = 0 : i64, loop = 12 : i64, order = [12, 13], pitch = 0 : i64, width = 1 : i64}],
// CHECK-SAME:    group = 1024 : i64, groups = 1 : i64, kernel = "stencil", order = [0, 1],
// CHECK-SAME:    places = ["shared", "shared"],
func.func @main(%a: memref<1024x1026xf32>, %b: memref<1022x1024xf32>) {
  %t = memref.alloc() : memref<1024x1024xf32>
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 1024 {
      %x = affine.load %a[%i, %j] : memref<1024x1026xf32>
      %y = affine.load %a[%i, %j + 1] : memref<1024x1026xf32>
      %z = affine.load %a[%i, %j + 2] : memref<1024x1026xf32>
      %s = arith.addf %x, %y : f32
      %r = arith.addf %s, %z : f32
      %e = math.exp %r : f32
      affine.store %e, %t[%i, %j] : memref<1024x1024xf32>
    }
  }
  affine.for %i = 0 to 1022 {
    affine.for %j = 0 to 1024 {
      %x = affine.load %t[%i, %j] : memref<1024x1024xf32>
      %y = affine.load %t[%i + 1, %j] : memref<1024x1024xf32>
      %z = affine.load %t[%i + 2, %j] : memref<1024x1024xf32>
      %s = arith.addf %x, %y : f32
      %r = arith.addf %s, %z : f32
      affine.store %r, %b[%i, %j] : memref<1022x1024xf32>
    }
  }
  return
}
