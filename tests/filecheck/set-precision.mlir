// PASSES: set-precision
// OPTIONS: mm_conv_precision_mode=mixed_bf16_fp32
//
// Operands of a product are rounded, those that are narrow already are not; a sum of products that
// is no contraction stays as it is, and so does float64.

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = affine.load %arg0
// CHECK:         %[[Y:.*]] = affine.load %arg1
// CHECK:         %[[W:.*]] = arith.extf %[[Y]] : bf16 to f32
// CHECK:         %[[R:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK:         %[[E:.*]] = arith.extf %[[R]] : bf16 to f32
// CHECK:         arith.mulf %[[E]], %[[W]]
// CHECK-NOT:     arith.truncf
func.func @main(%a: memref<40x64xf32>, %b: memref<64x50xbf16>, %c: memref<40x50xf32>,
                %d: memref<64xf32>, %e: memref<40xf32>,
                %f: memref<40x64xf64>, %g: memref<64x50xf64>, %h: memref<40x50xf64>) {
  %z = arith.constant 0.0 : f32
  %z64 = arith.constant 0.0 : f64
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 50 {
      %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<40x64xf32>
        %y = affine.load %b[%k, %j] : memref<64x50xbf16>
        %w = arith.extf %y : bf16 to f32
        %p = arith.mulf %x, %w fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %c[%i, %j] : memref<40x50xf32>
    }
  }
  affine.for %i = 0 to 40 {
    %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
      %x = affine.load %a[%i, %k] : memref<40x64xf32>
      %y = affine.load %d[%k] : memref<64xf32>
      %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %e[%i] : memref<40xf32>
  }
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 50 {
      %r = affine.for %k = 0 to 64 iter_args(%s = %z64) -> (f64) {
        %x = affine.load %f[%i, %k] : memref<40x64xf64>
        %y = affine.load %g[%k, %j] : memref<64x50xf64>
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f64
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f64
        affine.yield %t : f64
      }
      affine.store %r, %h[%i, %j] : memref<40x50xf64>
    }
  }
  return
}
