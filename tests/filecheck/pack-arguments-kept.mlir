// PASSES: pack-arguments
//
// The copy of a constant argument in another order belongs to the preparation, and pays although
// the nest reads each element only twice.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PACKED:.*]] = memref.alloc() : memref<3x16xf32>
// CHECK:         scf.if
// CHECK:           affine.store %{{.*}}, %[[PACKED]][
// CHECK:         } {polyblocks.region = "preparation"}
// CHECK:         affine.for %{{.*}} = 0 to 2 {
// CHECK:           affine.load %[[PACKED]][0,
// CHECK:           affine.load %[[PACKED]][1,
module {
  func.func @main(%x: memref<3x16xf32> {polyblocks.arg = {role = "input", name = "x", dtype = "float32", shape = array<i64: 3, 16>, strides = array<i64: 16, 1>, constant = false, updates = -1 : i64}},
                  %w: memref<16x3xf32> {polyblocks.arg = {role = "input", name = "w", dtype = "float32", shape = array<i64: 16, 3>, strides = array<i64: 3, 1>, constant = true, updates = -1 : i64}},
                  %y: memref<2x16xf32> {polyblocks.arg = {role = "output", name = "y", dtype = "float32", shape = array<i64: 2, 16>, strides = array<i64: 16, 1>, constant = false, updates = -1 : i64}}) {
    %true = arith.constant true
    scf.if %true {
    } {polyblocks.region = "preparation"}
    affine.for %i = 0 to 2 { affine.for %c = 0 to 16 {
      %a = affine.load %x[%i, %c] : memref<3x16xf32>
      %v = affine.load %w[%c, 0] : memref<16x3xf32>
      %p = arith.mulf %a, %v : f32
      %b = affine.load %x[%i + 1, %c] : memref<3x16xf32>
      %u = affine.load %w[%c, 1] : memref<16x3xf32>
      %q = arith.mulf %b, %u : f32
      %s = arith.addf %p, %q : f32
      affine.store %s, %y[%i, %c] : memref<2x16xf32>
    } }
    return
  }
}
