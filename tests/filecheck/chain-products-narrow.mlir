// PASSES: chain-products
// TARGET: chaining gpu
//
// Exponentials of 16 bits, as frameworks compute them that round after every operation: sums of 32
// bits would be rescaled by them block after block, and no more exact than they. Nothing is chained.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloc() : memref<16x1000x1000xf16>
// CHECK-NOT:     chained = true
func.func @main(%q: memref<16x1000x64xf16>, %k: memref<16x1000x64xf16>, %v: memref<16x1000x64xf16>, %out: memref<16x1000x64xf32>) {
  %low = arith.constant 0xFC00 : f16
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<16x1000x1000xf16>
  %max = memref.alloc() : memref<16x1000xf16>
  %exp = memref.alloc() : memref<16x1000x1000xf16>
  %sum = memref.alloc() : memref<16x1000xf32>
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
        %o = arith.truncf %r : f32 to f16
        affine.store %o, %scores[%h, %i, %j] : memref<16x1000x1000xf16>
      }
    }
  } {polyblocks.kernel = "scores", polyblocks.kind = "contraction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %m = affine.for %j = 0 to 1000 iter_args(%a = %low) -> (f16) {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf16>
        %n = arith.maximumf %a, %x : f16
        affine.yield %n : f16
      }
      affine.store %m, %max[%h, %i] : memref<16x1000xf16>
    }
  } {polyblocks.kernel = "max", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %j = 0 to 1000 {
        %x = affine.load %scores[%h, %i, %j] : memref<16x1000x1000xf16>
        %m = affine.load %max[%h, %i] : memref<16x1000xf16>
        %e = arith.subf %x, %m fastmath<reassoc,contract> : f16
        %p = math.exp %e : f16
        affine.store %p, %exp[%h, %i, %j] : memref<16x1000x1000xf16>
      }
    }
  } {polyblocks.kernel = "exp", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      %s = affine.for %j = 0 to 1000 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf16>
        %y = arith.extf %x : f16 to f32
        %n = arith.addf %a, %y fastmath<reassoc,contract> : f32
        affine.yield %n : f32
      }
      affine.store %s, %sum[%h, %i] : memref<16x1000xf32>
    }
  } {polyblocks.kernel = "sum", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %h = 0 to 16 {
    affine.for %i = 0 to 1000 {
      affine.for %d = 0 to 64 {
        %r = affine.for %j = 0 to 1000 iter_args(%s = %zero) -> (f32) {
          %a = affine.load %exp[%h, %i, %j] : memref<16x1000x1000xf16>
          %b = affine.load %v[%h, %j, %d] : memref<16x1000x64xf16>
          %x = arith.extf %a : f16 to f32
          %y = arith.extf %b : f16 to f32
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %l = affine.load %sum[%h, %i] : memref<16x1000xf32>
        %o = arith.divf %r, %l fastmath<reassoc,contract> : f32
        affine.store %o, %out[%h, %i, %d] : memref<16x1000x64xf32>
      }
    }
  } {polyblocks.kernel = "results", polyblocks.kind = "contraction", polyblocks.sources = []}
  return
}
