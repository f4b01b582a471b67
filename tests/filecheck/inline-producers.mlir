// PASSES: inline-producers
//
// An exponential that three neighbours need is computed three times: less than its buffer, which no
// cache holds, costs on the way to the memory and back. A sum of sixty is kept apart.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 16777214 {
// CHECK-COUNT-3:   math.absf
// CHECK:         }
// CHECK-NEXT:    return
func.func @main(%a: memref<16777216xf32>, %b: memref<16777214xf32>) {
  %t = memref.alloc() : memref<16777216xf32>
  affine.for %i = 0 to 16777216 {
    %x = affine.load %a[%i] : memref<16777216xf32>
    %y = math.absf %x : f32
    %z = arith.mulf %y, %x : f32
    %w = arith.addf %z, %y : f32
    affine.store %w, %t[%i] : memref<16777216xf32>
  }
  affine.for %i = 0 to 16777214 {
    %x = affine.load %t[%i] : memref<16777216xf32>
    %y = affine.load %t[%i + 1] : memref<16777216xf32>
    %z = affine.load %t[%i + 2] : memref<16777216xf32>
    %s = arith.addf %x, %y : f32
    %r = arith.addf %s, %z : f32
    affine.store %r, %b[%i] : memref<16777214xf32>
  }
  return
}
