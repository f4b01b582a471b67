// PASSES: tile-contractions
// ARCH: x86-64-v4
//
// Both operands are copied into panels in the order of their use: columns 32 side by side, step by
// step, once for all blocks of rows; rows one after the other, a line apart from a power of two. A
// register tile then goes through both in order.

// CHECK-DAG:   #[[B:.*]] = affine_map<(d0)[s0, s1, s2] -> (s0, d0 * 64 + s1 * 32 + s2)>
// CHECK-DAG:   #[[PANELS:.*]] = affine_map<(d0)[s0, s1, s2] -> (s1, s0, s2)>
// CHECK-DAG:   #[[A:.*]] = affine_map<(d0)[s0, s1] -> (d0 * 60 + s0, s1)>
// CHECK-DAG:   #[[LINES:.*]] = affine_map<(d0)[s0, s1] -> (s0, s1)>
// CHECK-LABEL: func.func @main
// CHECK:         %[[ROWS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<60x528xf32>
// CHECK:         %[[COLUMNS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2x512x32xf32>
// CHECK-NEXT:    affine.for %[[N:.*]] = 0 to 10 {
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[COLUMNS]], %[[N]]) {from = #[[B]], kind = "pack", shape = array<i64: 512, 2, 32>, to = #[[PANELS]]}
// CHECK-NEXT:      affine.for %[[M:.*]] = 0 to 5 {
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[ROWS]], %[[M]]) {from = #[[A]], kind = "pack", shape = array<i64: 60, 512>, to = #[[LINES]]}
// CHECK-NEXT:        affine.for %[[PANEL:.*]] = 0 to 2 {
// CHECK-NEXT:          affine.for %[[LANE:.*]] = 0 to 32 {
// CHECK-NEXT:            affine.for %[[TILE:.*]] = 0 to 10 {
// CHECK:                   affine.for %[[K:.*]] = 0 to 512 iter_args(
// CHECK-NEXT:                affine.load %[[COLUMNS]][%[[PANEL]], %[[K]], %[[LANE]]]
// CHECK-NEXT:                affine.load %[[ROWS]][%[[TILE]] * 6, %[[K]]]
// CHECK:                     affine.load %[[ROWS]][%[[TILE]] * 6 + 5, %[[K]]]
// CHECK:                 {polyblocks.lanes = 32 : i64}
module {
  func.func @main(%a: memref<300x512xf32>, %b: memref<512x640xf32>, %c: memref<300x640xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 300 {
      affine.for %j = 0 to 640 {
        %r = affine.for %k = 0 to 512 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<300x512xf32>
          %y = affine.load %b[%k, %j] : memref<512x640xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<300x640xf32>
      }
    } {polyblocks.schedule = {
         register_tile = [6, 32], block_tile = [60, 64], k_block = 512, sum_chunk = 512,
         chunks = [1, 1], packed = [true, true], threads = 1, transposed = false}}
    return
  }
}
