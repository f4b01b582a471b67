// PASSES: chain-products,choose-kernels,emit-kernels
// TARGET: nvgpu sm_90a
//
// A unit that reads shared memory computes a chain where the first product's sums are, as they are, its
// operand of the second one. Groups of warps multiply, a thread copies boxes of queries and keys, and
// another one those of values; each stage has a barrier that it is filled, and one that it is free.
// Sums of scores begin with constants, which are no operands.

// CHECK:       gpu.func @reduction
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mbarrier.init.shared"
// CHECK:         llvm.call_intrinsic "llvm.polyblocks.bulk.uniform"
// CHECK:         scf.if
// CHECK:           llvm.call_intrinsic "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
// CHECK:           scf.for
// CHECK:             llvm.call_intrinsic "llvm.nvvm.mbarrier.try.wait.parity
// CHECK:             llvm.call_intrinsic "llvm.nvvm.wgmma.fence.sync.aligned"()
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.polyblocks.wgmma.m64n{{64|128}}k16.f32.f16"(
// CHECK-NEXT:        llvm.extractvalue
// CHECK:             llvm.call_intrinsic "llvm.nvvm.wgmma.commit_group.sync.aligned"()
// CHECK:             llvm.call_intrinsic "llvm.polyblocks.wgmma.wait"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.mbarrier.arrive.shared"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.mbarrier.try.wait.parity
// CHECK:             llvm.call_intrinsic "llvm.polyblocks.wgmma.registers.m64n64k16.f32.f16"(
// CHECK:             llvm.call_intrinsic "llvm.polyblocks.wgmma.wait"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.mbarrier.arrive.shared"
// CHECK:           } else {
// CHECK:             llvm.call_intrinsic "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"
// CHECK-COUNT-3:     llvm.call_intrinsic "llvm.polyblocks.bulk.start"
func.func @main(%q: memref<16x1000x64xf16>, %k: memref<16x1000x64xf16>, %v: memref<16x1000x64xf16>, %out: memref<16x1000x64xf16>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<16x1000x1000xf32>
  %max = memref.alloc() : memref<16x1000xf32>
  %exp = memref.alloc() : memref<16x1000x1000xf32>
  %sum = memref.alloc() : memref<16x1000xf32>
  %parts = memref.alloc() : memref<16x1000x1000xf16>
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %q[%h, %i, %d] : memref<16x1000x64xf16>
          %b = affine.load %k[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %scores[%h, %i, %j] : memref<16x1000x1000xf32>
      }
    }
  } {polyblocks.kernel = "scores", polyblocks.kind = "contraction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %m = affine.for %j = 0 to 1000 iter_args(%a = %low) -> (f32) {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf32>
        %n = arith.maximumf %a, %x : f32
        affine.yield %n : f32
      }
      affine.store %m, %max[%h, %i] : memref<16x1000xf32>
    }
  } {polyblocks.kernel = "max", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf32>
        %m = affine.load %max[%h, %i] : memref<16x1000xf32>
        %e = arith.subf %x, %m fastmath<reassoc,contract> : f32
        %p = math.exp %e : f32
        affine.store %p, %exp[%h, %i, %j] : memref<16x1000x1000xf32>
      }
    }
  } {polyblocks.kernel = "exp", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %s = affine.for %j = 0 to 1000 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf32>
        %n = arith.addf %a, %x fastmath<reassoc,contract> : f32
        affine.yield %n : f32
      }
      affine.store %s, %sum[%h, %i] : memref<16x1000xf32>
    }
  } {polyblocks.kernel = "sum", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %x = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf32>
        %s = affine.load %sum[%h, %i] : memref<16x1000xf32>
        %o = arith.divf %x, %s fastmath<reassoc,contract> : f32
        %p = arith.truncf %o : f32 to f16
        affine.store %p, %parts[%h, %i, %j] : memref<16x1000x1000xf16>
      }
    }
  } {polyblocks.kernel = "parts", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %d = 0 to 64 {
        %r = affine.for %j = 0 to 1000 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %parts[%h, %i, %j] : memref<16x1000x1000xf16>
          %b = affine.load %v[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %o = arith.truncf %r : f32 to f16
        affine.store %o, %out[%h, %i, %d] : memref<16x1000x64xf16>
      }
    }
  } {polyblocks.kernel = "results", polyblocks.kind = "contraction", polyblocks.sources = []}
  return
}
