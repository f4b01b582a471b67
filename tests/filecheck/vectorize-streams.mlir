// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// An output that no cache can hold is stored past the caches if it is aligned; one that fits is
// not. Rows that begin anywhere begin with a part of a vector, up to the first aligned element.

// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = memref.extract_aligned_pointer_as_index %[[OUT:.*]] :
// CHECK:         %[[OFF:.*]] = arith.andi %[[P]], %{{.*}}
// CHECK:         %[[OK:.*]] = arith.cmpi eq, %[[OFF]], %{{.*}}
// CHECK:         scf.if %[[OK]] {
// CHECK:           vector.store %{{.*}}, %[[OUT]][%{{.*}}, %{{.*}}] {alignment = 64 : i64, nontemporal = true}
// CHECK:         } else {
// CHECK:           vector.store %{{.*}}, %[[OUT]][%{{.*}}, %{{.*}}] : memref<32768x1024xf32>
// CHECK-NOT:     nontemporal
// CHECK:         memref.extract_aligned_pointer_as_index %[[ROWS:.*]] : memref<32768x1001xf32>
// CHECK:         scf.if
// CHECK:           vector.maskedstore %[[ROWS]]
// CHECK:         scf.for
// CHECK:           vector.store %{{.*}}, %[[ROWS]][%{{.*}}, %{{.*}}] {alignment = 64 : i64, nontemporal = true}
// CHECK:         scf.if
// CHECK:           vector.maskedstore %[[ROWS]]
func.func @main(
    %a: memref<32768x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "a", role = "input", shape = array<i64: 32768, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}},
    %b: memref<32768x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "b", role = "output", shape = array<i64: 32768, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}},
    %c: memref<64x1024xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "c", role = "output", shape = array<i64: 64, 1024>, strides = array<i64: 1024, 1>, updates = -1 : i64}},
    %d: memref<32768x1001xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "d", role = "output", shape = array<i64: 32768, 1001>, strides = array<i64: 1001, 1>, updates = -1 : i64}}) {
  affine.for %i = 0 to 32768 {
    affine.for %j = 0 to 1024 {
      %x = affine.load %a[%i, %j] : memref<32768x1024xf32>
      affine.store %x, %b[%i, %j] : memref<32768x1024xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 1024 {
      %x = affine.load %a[%i, %j] : memref<32768x1024xf32>
      affine.store %x, %c[%i, %j] : memref<64x1024xf32>
    }
  }
  affine.for %i = 0 to 32768 {
    affine.for %j = 0 to 1001 {
      %x = affine.load %a[%i, %j] : memref<32768x1024xf32>
      affine.store %x, %d[%i, %j] : memref<32768x1001xf32>
    }
  }
  return
}
