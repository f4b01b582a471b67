// PASSES: chain-products
// TARGET: chaining gpu
//
// What the sums begin with is made of a narrower number, as where a framework adds up 16 bits and
// the sums are kept in 32: the nest of both products has all that makes it.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc()
// CHECK:         affine.for %[[I:.*]] = 0 to 8192 {
// CHECK-NEXT:      %[[TOTAL:.*]] = memref.alloca() {{.*}} : memref<64xf32>
// CHECK-NEXT:      affine.for %[[D:.*]] = 0 to 64 {
// CHECK-NEXT:        %[[NARROW:.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT:        %[[START:.*]] = arith.extf %[[NARROW]] : f16 to f32
// CHECK-NEXT:        affine.store %[[START]], %[[TOTAL]][%[[D]]]
// CHECK:           affine.for %[[T:.*]] = 0 to
// CHECK:             arith.maximumf
// CHECK:         chained = true
func.func @main(%x: memref<8192x64xf16>, %w: memref<64x128xf16>, %v: memref<128x64xf16>, %out: memref<8192x64xf16>) {
  %y = memref.alloc() : memref<8192x128xf16>
  affine.for %i = 0 to 8192 {
    affine.for %j = 0 to 128 {
      %zero = arith.constant 0.0 : f16
      %start = arith.extf %zero : f16 to f32
      %r = affine.for %k = 0 to 64 iter_args(%s = %start) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<8192x64xf16>
        %b = affine.load %w[%k, %j] : memref<64x128xf16>
        %c = arith.extf %a : f16 to f32
        %d = arith.extf %b : f16 to f32
        %p = arith.mulf %c, %d fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %n = arith.truncf %r : f32 to f16
      %m = arith.maximumf %n, %zero : f16
      affine.store %m, %y[%i, %j] : memref<8192x128xf16>
    }
  } {polyblocks.kernel = "first", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %i = 0 to 8192 {
    affine.for %j = 0 to 64 {
      %zero = arith.constant 0.0 : f16
      %start = arith.extf %zero : f16 to f32
      %r = affine.for %k = 0 to 128 iter_args(%s = %start) -> (f32) {
        %a = affine.load %y[%i, %k] : memref<8192x128xf16>
        %b = affine.load %v[%k, %j] : memref<128x64xf16>
        %c = arith.extf %a : f16 to f32
        %d = arith.extf %b : f16 to f32
        %p = arith.mulf %c, %d fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %n = arith.truncf %r : f32 to f16
      affine.store %n, %out[%i, %j] : memref<8192x64xf16>
    }
  } {polyblocks.kernel = "second", polyblocks.kind = "reduction", polyblocks.sources = []}
  return
}
