// PASSES: stage-operands
// TARGET: nvgpu sm_90a
//
// A product by a unit that several warps call and that reads shared memory: there are no copies to
// registers. Threads copy pieces, since a row's steps do not follow each other evenly, nor in whole lines. Columns of the second operand lie in two panels of 64, step by step. Two tiles are on
// their way before the first one is multiplied. The products of a tile go on beside those of the next
// one, so that the copies which follow fill the place of the tile before that.

// CHECK-DAG:   #[[OUTER:.*]] = affine_map<{{.*}} ((d1 + 2) mod 4, d0 mod 128, s0 mod 64)>
// CHECK-DAG:   #[[PANELS:.*]] = affine_map<{{.*}} (1, ((d0 mod 128) floordiv 64) * 64 + s0 mod 64, d0 mod 64)>
// CHECK-LABEL: func.func @main
// CHECK:           %[[A:.*]] = memref.alloca() {alignment = 64 : i64, polyblocks.layout = [{into = 2 : i64, masks = [8, 16, 32], of = 1 : i64}]} : memref<4x128x64xf16, "shared">
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() {alignment = 64 : i64, polyblocks.layout = [{into = 2 : i64, masks = [8, 16, 32], of = 1 : i64}]} : memref<4x128x64xf16, "shared">
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %[[A]], %[[I:arg[0-9]+]]) {{{.*}}kind = "asynchronous"
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[B]], %[[J:arg[0-9]+]]) {{{.*}}kind = "asynchronous"
// CHECK-NEXT:      "polyblocks.commit"() : () -> ()
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %[[A]], %[[I]])
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[B]], %[[J]]) {{{.*}}to = #[[PANELS]]
// CHECK-NEXT:      "polyblocks.commit"() : () -> ()
// CHECK-NEXT:      affine.for %[[T:arg[0-9]+]] = 0 to 6 iter_args
// CHECK-NEXT:        "polyblocks.wait"() {pending = 1 : i64}
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        affine.for %[[K:arg[0-9]+]] =
// CHECK-NEXT:          affine.load %[[A]][%[[T]] mod 4, %[[I]] mod 128, %[[K]] mod 64]
// CHECK-NEXT:          affine.load %[[B]][%[[T]] mod 4, ((%[[J]] mod 128) floordiv 64) * 64 + %[[K]] mod 64, %[[J]] mod 64]
// CHECK-COUNT-4:     polyblocks.unit_steps = "wgmma.m64n128k16"
// CHECK-NEXT:        "polyblocks.commit"() {of = "products"}
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[A]], %[[I]], %[[T]]) {{{.*}}to = #[[OUTER]]
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %[[B]], %[[J]], %[[T]])
// CHECK-NEXT:        "polyblocks.commit"() : () -> ()
// CHECK-NEXT:        "polyblocks.wait"() {of = "products", pending = 1 : i64}
// CHECK-NEXT:        affine.yield
// CHECK:           "polyblocks.wait"() {of = "products", pending = 1 : i64}
// CHECK:           "polyblocks.wait"() {of = "products", pending = 0 : i64}
// CHECK-NOT:       "polyblocks.wait"
module {
  func.func @main(%a: memref<512x16x40xf16>, %b: memref<16x32x256xf16>, %c: memref<512x256xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 512 {
      affine.for %j = 0 to 256 {
        %s = affine.for %g = 0 to 16 iter_args(%r = %zero) -> (f32) {
         %p = affine.for %k = 0 to 32 iter_args(%t = %r) -> (f32) {
          %x = affine.load %a[%i, %g, %k] : memref<512x16x40xf16>
          %y = affine.load %b[%g, %k, %j] : memref<16x32x256xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
         }
         affine.yield %p : f32
        }
        %h = arith.truncf %s : f32 to f16
        affine.store %h, %c[%i, %j] : memref<512x256xf16>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "wgmma.m64n128k16", register_tile = [64, 128],
         block_tile = [128, 128], k_block = 64, stages = 4}}
    return
  }
}
