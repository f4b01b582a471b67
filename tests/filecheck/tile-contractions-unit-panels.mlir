// PASSES: tile-contractions
// ARCH: sapphirerapids
//
// A unit of tiles reads words of four bytes. Where neighbours in memory are neighbouring steps these
// are there already: columns are copied as they are, into panels in the order of their use, and the unit
// multiplies tiles of both.

// CHECK-DAG:   #[[WORDS:.*]] = affine_map<(d0)[s0, s1, s2, s3] -> ((d0 mod 32) * 4096 + s0 * 1024 + s2 * 64 + s3 + s1 * 16)>
// CHECK-DAG:   #[[TURNED:.*]] = affine_map<(d0)[s0, s1, s2, s3] -> (s0 floordiv 2, s3 + s1 * 16, s2 + (s0 mod 2) * 16)>
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<131072xi32>
// CHECK:         %[[B:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<131072xi32>
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (96) {
// CHECK-NEXT:      %[[PANELS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2x64x32xi32>
// CHECK-NEXT:      "polyblocks.copy"(%[[B]], %[[PANELS]], %[[T]]) {from = #[[WORDS]], kind = "pack", shape = array<i64: 4, 4, 16, 16>, to = #[[TURNED]]}
// CHECK-NEXT:      affine.for %[[M:.*]] = 0 to min #{{.*}}(%[[T]]) {
// CHECK-NEXT:        affine.for %[[N:.*]] = 0 to 2 {
// CHECK-NEXT:          "polyblocks.multiply"(%[[A]], %[[PANELS]], %arg2, %[[M]], %[[T]], %[[N]]) {{{.*}}shape = array<i64: 32, 32, 64>, unit = "tdpbssd"}
module {
  func.func @main(%a: memref<2048x256xi8>, %b: memref<2048x256xi8>, %c: memref<2048x2048xi32>) {
    %z = arith.constant 0 : i32
    affine.for %i = 0 to 2048 {
      affine.for %j = 0 to 2048 {
        %r = affine.for %k = 0 to 256 iter_args(%s = %z) -> (i32) {
          %x = affine.load %a[%i, %k] : memref<2048x256xi8>
          %y = affine.load %b[%j, %k] : memref<2048x256xi8>
          %x32 = arith.extsi %x : i8 to i32
          %y32 = arith.extsi %y : i8 to i32
          %p = arith.muli %x32, %y32 : i32
          %t = arith.addi %s, %p : i32
          affine.yield %t : i32
        }
        affine.store %r, %c[%i, %j] : memref<2048x2048xi32>
      }
    } {polyblocks.schedule = {unit = "tdpbssd", register_tile = [32, 32], transposed = false}}
    return
  }
}
