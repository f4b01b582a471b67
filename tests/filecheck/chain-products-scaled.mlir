// PASSES: chain-products
// TARGET: chaining gpu
//
// Scores are scaled by a constant where exponents are computed of them, and where the largest one
// is subtracted: 0.125 times the binary logarithm of e.

// CHECK-LABEL: func.func @main
// CHECK:           %[[R:.*]]:2 = affine.for %[[T:.*]] = 0 to {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK-DAG:           %[[SCORES:.*]] = memref.alloca() {{.*}} : memref<[[BLOCK:[0-9]+]]xf32>
// CHECK:                 %[[SUM:.*]] = affine.for %{{.*}} = 0 to 64 iter_args
// CHECK:                 affine.store %[[SUM]], %[[SCORES]]
// CHECK:               %[[MAX:.*]] = affine.for {{.*}} iter_args(%{{.*}} = %[[M]])
// CHECK:               %[[NUMBER:.*]] = arith.constant -0.18033
// CHECK:               arith.mulf %{{.*}}, %[[NUMBER]]
// CHECK:               %[[SHIFT:.*]] = arith.mulf %{{.*}}, %[[NUMBER]]
// CHECK:                 %[[X:.*]] = affine.load %[[SCORES]]
// CHECK:                 %[[SCALE:.*]] = arith.constant 0.18033
// CHECK:                 math.fma %[[X]], %[[SCALE]], %[[SHIFT]]
// CHECK-NEXT:            llvm.call_intrinsic "llvm.exp2.f32"
func.func @main(%q: memref<16x1000x64xf16>, %k: memref<16x1000x64xf16>, %v: memref<16x1000x64xf16>, %out: memref<16x1000x64xf16>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
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
        %c = arith.mulf %r, %scale fastmath<reassoc,contract> : f32
        affine.store %c, %scores[%h, %i, %j] : memref<16x1000x1000xf32>
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
