// PASSES: stage-operands,emit-kernels
// TARGET: nvgpu sm_90a
//
// Two blocks, whose tiles follow each other along rows, are a cluster. All threads of both meet when
// barriers are made, and before one ends. Each block copies the rows of its own tile, and for both one
// of two panels of the columns; a warp that has used a stage says so to both.

// CHECK:       gpu.func @product
// CHECK-SAME:  polyblocks.cluster = 2 : i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mbarrier.init.shared"(%{{.*}}, %c1_i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mbarrier.init.shared"(%{{.*}}, %c16_i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.barrier.cluster.wait"
// CHECK-NOT:     gpu.barrier
// CHECK:         arith.cmpi ult, %{{.*}}, %c2
// CHECK-NEXT:    scf.if
// CHECK:           llvm.call_intrinsic "llvm.polyblocks.bulk.arrive_at"
// CHECK:         llvm.call_intrinsic "llvm.polyblocks.bulk.start"
// CHECK:         llvm.call_intrinsic "llvm.polyblocks.bulk.share"
// CHECK-NOT:     bulk.share
// CHECK:         llvm.call_intrinsic "llvm.polyblocks.bulk.start"
// CHECK:         llvm.call_intrinsic "llvm.polyblocks.bulk.share"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.barrier.cluster.wait"
// CHECK-NEXT:    gpu.return
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
         block_tile = [128, 128], k_block = 64, stages = 4, cluster = [2, 1]}}
    return
  }
}
