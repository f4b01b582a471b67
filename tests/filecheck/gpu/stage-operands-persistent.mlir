// PASSES: stage-operands
// TARGET: nvgpu sm_90a
//
// More tiles than multiprocessors, each of which has room for one block: blocks compute tile after
// tile. Behind the last operands of a tile their places are free for those of the next one, and
// results wait for those of the tile before to have left.

// CHECK-LABEL: func.func @main
// CHECK:           "polyblocks.wait"() {of = "uses", pending = 3 : i64}
// CHECK:           affine.for %{{.*}} = 0 to 6 iter_args
// CHECK:             "polyblocks.commit"() {of = "uses"}
// CHECK:           "polyblocks.commit"() {of = "products"}
// CHECK-NEXT:      "polyblocks.wait"() {of = "products", pending = 1 : i64}
// CHECK-NEXT:      "polyblocks.commit"() {of = "uses"}
// CHECK-NEXT:      "polyblocks.wait"() {of = "products", pending = 0 : i64}
// CHECK-NEXT:      "polyblocks.commit"() {of = "uses"}
// CHECK:           %[[C:.*]] = memref.alloca() {{.*}} : memref<2x128x64xf16, "shared">
// CHECK-NEXT:      "polyblocks.wait"() {of = "results", pending = 0 : i64}
// CHECK-NEXT:      "polyblocks.barrier"() {scope = "consumers"}
// CHECK:           affine.store %{{.*}}, %[[C]]
// CHECK-NEXT:      "polyblocks.barrier"() {scope = "consumers"}
// CHECK-NEXT:      "polyblocks.copy"(%[[C]], %arg2, %{{.*}}) {{{.*}}kind = "bulk"
// CHECK-NEXT:      "polyblocks.commit"() {of = "results"}
module {
  func.func @main(%a: memref<4096x512xf16>, %b: memref<512x4096xf16>, %c: memref<4096x4096xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 4096 {
      affine.for %j = 0 to 4096 {
        %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<4096x512xf16>
          %y = affine.load %b[%k, %j] : memref<512x4096xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        %h = arith.truncf %s : f32 to f16
        affine.store %h, %c[%i, %j] : memref<4096x4096xf16>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, unit = "wgmma.m64n128k16", register_tile = [64, 128],
         block_tile = [128, 128], k_block = 64, stages = 4}}
    return
  }
}
