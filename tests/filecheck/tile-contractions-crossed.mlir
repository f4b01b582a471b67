// PASSES: tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// Rows are neighbours in the left operand and in the result: they are copied along their loop, so
// that those of one step lie one after the other, and results wait in a buffer of which squares
// are transposed, for as many columns at a time as a vector has lanes.

// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (8) {
// CHECK:           %[[PANEL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<640x48xf32>
// CHECK:           %[[WAITING:.*]] = memref.alloca() {alignment = 64 : i64} : memref<48x{{.*}}xf32>
// CHECK:           %[[STRIP:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8x48xf32>
// CHECK:           affine.for %{{.*}} = 0 to 640 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT:          affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:            affine.load %arg1
// CHECK:           affine.for %[[BLOCK:.*]] = 0 to 2 {
// CHECK-NEXT:        affine.for %[[K:.*]] = 0 to 640 {
// CHECK-NEXT:          affine.for %[[R:.*]] = 0 to 48 {
// CHECK-NEXT:            affine.load %arg0[%[[K]], %[[BLOCK]] * 48 + %[[R]]]
// CHECK-NEXT:            affine.store %{{.*}}, %[[PANEL]][%[[K]], %[[R]]]
// CHECK:             affine.load %[[PANEL]][%{{.*}} * 128 + %{{.*}}, %{{.*}} * 6 + 5]
// CHECK:             affine.for %[[C:.*]] = 0 to {{.*}} {
// CHECK-NEXT:          affine.for %[[S:.*]] = 0 to 6 {
// CHECK-NEXT:            affine.for %[[A:.*]] = 0 to 8 {
// CHECK-NEXT:              affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT:                affine.load %[[WAITING]][%[[A]] + %[[S]] * 8, %[[C]] * 8 + %[[B]]]
// CHECK-NEXT:                affine.store %{{.*}}, %[[STRIP]][%[[B]], %[[A]] + %[[S]] * 8]
// CHECK:               affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT:            affine.for %[[I:.*]] = 0 to 48 {
// CHECK:                   affine.load %[[STRIP]][%[[J]], %[[I]]]
// CHECK:                   math.exp
// CHECK-NEXT:              affine.store %{{.*}}, %arg2[%[[T]] * 32 + %[[C]] * 8 + %[[J]], %[[BLOCK]] * 48 + %[[I]]]

module {
  func.func @main(%a: memref<640x96xf32>, %b: memref<640x256xf32>, %c: memref<256x96xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 96 {
      affine.for %j = 0 to 256 {
        %r = affine.for %k = 0 to 640 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%k, %i] : memref<640x96xf32>
          %y = affine.load %b[%k, %j] : memref<640x256xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %o = math.exp %r : f32
        affine.store %o, %c[%j, %i] : memref<256x96xf32>
      }
    } {polyblocks.schedule = {transposed = true, staged = true, windows = false,
       register_tile = [6, 16], block_tile = [48, 32], k_block = 640, sum_chunk = 128,
       chunks = [1, 8], packed = [true, true], threads = 8}}
    return
  }
}
