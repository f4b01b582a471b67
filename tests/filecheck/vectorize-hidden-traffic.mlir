// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Beside a dozen powers the lines that a store brings into the cache cost nothing: the loop is not
// written twice, for two alignments, though the output is larger than all caches.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     extract_aligned_pointer
// CHECK-NOT:     nontemporal
// CHECK:         scf.for
// CHECK-COUNT-12: math.powf
// CHECK-NOT:     math.powf
func.func @main(
    %x: memref<32768x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "x", role = "input", shape = array<i64: 32768, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}},
    %out: memref<32768x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "out", role = "output", shape = array<i64: 32768, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}}) {
  affine.for %i = 0 to 32768 {
    affine.for %j = 0 to 1024 {
      %y = affine.load %x[%i, %j] : memref<32768x1024xf32>
      %a1 = arith.addf %y, %y : f32
      %b1 = math.powf %a1, %y : f32
      %c1 = math.powf %b1, %y : f32
      %d1 = math.powf %c1, %y : f32
      %e1 = math.powf %d1, %y : f32
      %f1 = math.powf %e1, %y : f32
      %g1 = math.powf %f1, %y : f32
      %h1 = math.powf %g1, %y : f32
      %i1 = math.powf %h1, %y : f32
      %j1 = math.powf %i1, %y : f32
      %k1 = math.powf %j1, %y : f32
      %l1 = math.powf %k1, %y : f32
      %m1 = math.powf %l1, %y : f32
      affine.store %m1, %out[%i, %j] : memref<32768x1024xf32>
    }
  }
  return
}
