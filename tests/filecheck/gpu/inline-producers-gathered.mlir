// PASSES: inline-producers
// TARGET: nvgpu sm_80
//
// A matrix unit computes the product: what is added to it is loaded at places that are known, so
// rows of a table are gathered in a kernel of their own.

// CHECK-LABEL: func.func @main
// CHECK:         %[[ROWS:.*]] = memref.alloc() : memref<128x256xf16>
// CHECK:         memref.load %arg0
// CHECK:         affine.store %{{.*}}, %[[ROWS]]
// CHECK:         affine.for
// CHECK:           arith.mulf
// CHECK-NOT:       memref.load
// CHECK:           affine.load %[[ROWS]]
// CHECK:         return
func.func @main(%table: memref<1000x256xf16>, %places: memref<128xindex>, %a: memref<128x512xf16>, %b: memref<512x256xf16>, %c: memref<128x256xf16>) {
  %rows = memref.alloc() : memref<128x256xf16>
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 128 {
    affine.for %j = 0 to 256 {
      %p = affine.load %places[%i] : memref<128xindex>
      %x = memref.load %table[%p, %j] : memref<1000x256xf16>
      affine.store %x, %rows[%i, %j] : memref<128x256xf16>
    }
  }
  affine.for %i = 0 to 128 {
    affine.for %j = 0 to 256 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<128x512xf16>
        %y = affine.load %b[%k, %j] : memref<512x256xf16>
        %xw = arith.extf %x : f16 to f32
        %yw = arith.extf %y : f16 to f32
        %m = arith.mulf %xw, %yw fastmath<reassoc,contract> : f32
        %u = arith.addf %t, %m fastmath<reassoc,contract> : f32
        affine.yield %u : f32
      }
      %r = arith.truncf %s : f32 to f16
      %z = affine.load %rows[%i, %j] : memref<128x256xf16>
      %w = arith.addf %r, %z : f16
      affine.store %w, %c[%i, %j] : memref<128x256xf16>
    }
  }
  return
}
