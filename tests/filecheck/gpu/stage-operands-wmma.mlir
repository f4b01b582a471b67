// PASSES: stage-operands
// TARGET: amdgpu gfx1100
//
// A product by a unit whose operands go through registers. In the loop a tile's operands are loaded
// while the one before is multiplied, unit by unit of the warp: the bounds of a node say for which of
// its four units it is. Before the last four products of a tile the next one is stored to its other
// stage, and the block waits; the next tile's first operands are read behind that, into registers of
// their own. At the end lanes exchange the sums of a row of units through shared memory, so that each
// has neighbouring columns of a row to store.

// CHECK-DAG:   #[[NEXT:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 64 + 32)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 64 + 32, d1 * 64 - ((d0 mod 32) floordiv 16) * 16 + 32)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0, d1, d2) -> (d0 * 64 + 16, d0 * 64 - ((d1 mod 32) floordiv 16) * 32 - ((d2 mod 32) floordiv 16) * 16 + 16)>
// CHECK-DAG:   #[[OTHER:.*]] = affine_map<(d0, d1)[s0] -> (1, d0 mod 64, s0 mod 32)>
// CHECK-DAG:   #[[UNIT:.*]] = affine_map<(d0) -> ((d0 mod 32) floordiv 16)>
// CHECK-DAG:   #[[END:.*]] = affine_map<(d0) -> ((d0 mod 32) floordiv 16 + 1)>
// CHECK-LABEL: func.func @main
// CHECK:           %[[A:.*]] = memref.alloca() {{{.*}}polyblocks.layout = {{.*}} : memref<2x64x32xf16, "shared">
// CHECK-NEXT:      %[[L:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      %[[X:.*]] = memref.alloca() {{.*}} : memref<2x32xf16, "registers">
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() {{{.*}}polyblocks.layout = {{.*}} : memref<2x64x32xf16, "shared">
// CHECK-NEXT:      %[[M:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      %[[Y:.*]] = memref.alloca() {{.*}} : memref<2x32xf16, "registers">
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %[[L]], %[[I:.*]]) {{{.*}}kind = "registers"
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[M]], %[[J:.*]]) {{{.*}}kind = "registers"
// CHECK-NEXT:      "polyblocks.copy"(%[[L]], %[[A]], %[[I]])
// CHECK-NEXT:      "polyblocks.copy"(%[[M]], %[[B]], %[[J]])
// CHECK-NEXT:      "polyblocks.barrier"() {scope = "block"}
// CHECK-COUNT-3:   kind = "fragments"
// CHECK:           affine.for %[[T:.*]] = 0 to 7 iter_args
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[L]], %[[I]], %[[T]]) {{{.*}}kind = "registers", lower = [#[[NEXT]]]
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %[[M]], %[[J]], %[[T]])
// CHECK-NEXT:        "polyblocks.copy"(%[[A]], %[[X]], %[[I]], %[[T]]) {{{.*}}kind = "fragments"{{.*}}upper = [#[[ROW]]]
// CHECK-NEXT:        "polyblocks.copy"(%[[B]], %[[Y]], %[[J]], %[[T]])
// CHECK-NEXT:        affine.for %[[K:.*]] = #{{.*}}(%[[T]]) to min #[[FIRST]](%[[T]], %[[I]], %[[J]]) iter_args
// CHECK-NEXT:          affine.load %[[X]][0, %[[K]] mod 32]
// CHECK-NEXT:          affine.load %[[Y]][0, %[[K]] mod 32]
// CHECK:             {polyblocks.unit_steps = "wmma.f32.16x16x16.f16"}
// CHECK:             affine.for %{{.*}} = max #{{.*}} to min
// CHECK:             affine.for %{{.*}} = max #{{.*}} to #{{.*}}(%[[T]])
// CHECK:             "polyblocks.copy"(%[[L]], %[[A]], %[[I]], %[[T]]) {{{.*}}to = #[[OTHER]]
// CHECK-NEXT:        "polyblocks.copy"(%[[M]], %[[B]], %[[J]], %[[T]])
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        "polyblocks.copy"(%[[A]], %[[X]], %[[I]], %[[T]]) {from = #[[OTHER]], kind = "fragments"
// CHECK-NOT:         "polyblocks.barrier"
// CHECK:             affine.load %[[X]][1, %{{.*}} mod 32]
// CHECK:             "polyblocks.barrier"
// CHECK:             affine.yield
// CHECK:           "polyblocks.barrier"
// CHECK-NOT:       "polyblocks.barrier"
// CHECK:           %[[E:.*]] = memref.alloca() {{{.*}}polyblocks.layout = [{into = 2 : i64, masks = [16, 8, 4, 16], of = 1 : i64}]} : memref<4x16x32xf32, "shared">
// CHECK-NEXT:      affine.for %{{.*}} = #[[UNIT]](%[[I]]) to #[[END]](%[[I]]) {
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        affine.store %{{.*}}, %[[E]][((%[[I]] mod 64) floordiv 32) * 2 + (%[[J]] mod 64) floordiv 32, %[[I]] mod 16, %[[J]] mod 32]
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        %[[S:.*]] = affine.load %[[E]]
// CHECK-NEXT:        %[[H:.*]] = arith.truncf %[[S]]
// CHECK-NEXT:        affine.store %[[H]], %arg2[%[[I]], %[[J]]]
module {
  func.func @main(%a: memref<512x512xf16>, %b: memref<256x512xf16>, %c: memref<512x256xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<512x512xf16>
          %y = affine.load %b[%j, %k] : memref<256x512xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        %h = arith.truncf %s : f32 to f16
        affine.store %h, %c[%i, %j] : memref<512x256xf16>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "wmma.f32.16x16x16.f16", register_tile = [32, 32],
         block_tile = [64, 64], k_block = 32, stages = 2}}
    return
  }
}
