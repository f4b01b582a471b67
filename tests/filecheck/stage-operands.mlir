// PASSES: stage-operands
// TARGET: copying gpu
//
// The operands of a product by a matrix unit. Each has three stages in shared memory, in which pieces
// change places. Three copies are on their way at first. In the loop a tile's first stage is filled
// again beside the products of the last call on it, whose operands are in registers; then copies of one
// stage may still be on their way, and the block waits. Other nests stay as they are.

// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1)[s0] -> (d0, s0)>
// CHECK-DAG:   #[[FILLED:.*]] = affine_map<(d0, d1)[s0] -> (d1 mod 3, d0 mod 32, s0 mod 32)>
// CHECK-DAG:   #[[BEGIN:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 32 + 96)>
// CHECK-DAG:   #[[READ:.*]] = affine_map<(d0, d1)[s0] -> ((d0 + 1) mod 3, d1 mod 32, s0 mod 32)>
// CHECK-DAG:   #[[STEPS:.*]] = affine_map<(d0) -> (d0 * 32 + 16)>
// CHECK-LABEL: func.func @main
// CHECK:           %[[A:.*]] = memref.alloca() {{{.*}}polyblocks.layout = [{into = 2 : i64, masks = [0, 8, 16], of = 1 : i64}]} : memref<3x32x32xf16, "shared">
// CHECK-NEXT:      %[[X:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() {{{.*}}polyblocks.layout = {{.*}} : memref<3x64x32xf16, "shared">
// CHECK-NEXT:      %[[Y:.*]] = memref.alloca() {{.*}} : memref<32xf16, "registers">
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %[[A]], %[[I:.*]]) {{{.*}}kind = "asynchronous"
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[B]], %[[J:.*]]) {{{.*}}kind = "asynchronous"
// CHECK-NEXT:      "polyblocks.commit"
// CHECK-COUNT-2:   "polyblocks.commit"
// CHECK-NEXT:      "polyblocks.wait"() {pending = 2 : i64}
// CHECK-NEXT:      "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:      "polyblocks.copy"(%[[A]], %[[X]], %[[I]]) {{{.*}}kind = "fragments"
// CHECK-NEXT:      "polyblocks.copy"(%[[B]], %[[Y]], %[[J]]) {{{.*}}kind = "fragments"
// CHECK:           {polyblocks.unit_steps = "unit"}
// CHECK:           %[[S:.*]] = affine.for %[[T:.*]] = 0 to 13 iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[A]], %[[I]], %[[T]]) {from = #[[ROW]], kind = "asynchronous", lower = [#[[BEGIN]]], shape = array<i64: 512>, to = #[[FILLED]], upper = [#{{.*}}]}
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %[[B]], %[[J]], %[[T]])
// CHECK-NEXT:        %[[LAST:.*]] = affine.for %[[K:.*]] = #[[STEPS]](%[[T]]) to #{{.*}}(%[[T]]) iter_args(%[[C:.*]] = %[[BEFORE]]) -> (f32) {
// CHECK-NEXT:          affine.load %[[X]][%[[K]] mod 32]
// CHECK-NEXT:          affine.load %[[Y]][%[[K]] mod 32]
// CHECK:               arith.addf %[[C]], %{{.*}}
// CHECK:             {polyblocks.unit_steps = "unit"}
// CHECK-NEXT:        "polyblocks.copy"(%[[A]], %[[X]], %[[T]], %[[I]]) {from = #[[READ]], kind = "fragments"
// CHECK-NEXT:        "polyblocks.copy"(%[[B]], %[[Y]], %[[T]], %[[J]])
// CHECK-NEXT:        affine.for %{{.*}} iter_args(%{{.*}} = %[[LAST]])
// CHECK:             "polyblocks.copy"(%[[A]], %[[X]], %[[T]], %[[I]])
// CHECK-NEXT:        "polyblocks.copy"(%[[B]], %[[Y]], %[[T]], %[[J]])
// CHECK-NEXT:        "polyblocks.commit"
// CHECK-NEXT:        "polyblocks.wait"() {pending = 1 : i64}
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        affine.yield
// CHECK-NOT:       kind = "asynchronous"
// CHECK:           affine.store %{{.*}}, %arg3[%[[I]], %[[J]]]
// CHECK:         steps = {{\[\[}}0, 512]]
// CHECK:             affine.load %arg3
// CHECK-NEXT:        arith.truncf
// CHECK-NEXT:        affine.store
module {
  func.func @main(%a: memref<512x512xf16>, %b: memref<256x512xf16>, %c: memref<512x256xf16>,
                  %d: memref<512x256xf32>) {
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
        affine.store %s, %d[%i, %j] : memref<512x256xf32>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "unit", register_tile = [16, 32],
         block_tile = [32, 64], k_block = 32, stages = 3}}
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %x = affine.load %d[%i, %j] : memref<512x256xf32>
        %h = arith.truncf %x : f32 to f16
        affine.store %h, %c[%i, %j] : memref<512x256xf16>
      }
    } {polyblocks.schedule = {kernel = "round", resident = 1, group = 1, groups = 128}}
    return
  }
}
