// PASSES: split-contractions
// TARGET: gpu
//
// A product of few rows and columns is computed in parts, which are added up in order by the nest
// that rounds and stores. Its steps are no multiple of a part's: what the last one lacks is loaded
// as zeros. A product whose tiles fill the multiprocessors stays as it is.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[A:[^:]*]]: memref<64x10000xf16>
// CHECK:       %[[PARTS:.*]] = memref.alloc() : memref<[[N:[0-9]+]]x64x64xf32>
// CHECK:       affine.for %[[P:.*]] = 0 to [[N]] {
// CHECK:         affine.for %{{.*}} = 0 to [[LENGTH:[0-9]+]] iter_args
// CHECK:           affine.if
// CHECK:             affine.load %[[A]]
// CHECK:         affine.store %{{.*}}, %[[PARTS]][%[[P]],
// CHECK:       affine.for
// CHECK:         affine.for %{{.*}} = 0 to [[N]] iter_args
// CHECK:           affine.load %[[PARTS]]
// CHECK:           arith.addf
// CHECK:         arith.truncf
// CHECK:       affine.for %{{.*}} = 0 to 4096 {
// CHECK-NEXT:    affine.for %{{.*}} = 0 to 4096 {
// CHECK:           affine.for %{{.*}} = 0 to 512 iter_args
// CHECK-NOT:   affine.for
func.func @main(%a: memref<64x10000xf16>, %b: memref<64x10000xf16>, %c: memref<64x64xf16>,
                %d: memref<4096x512xf16>, %e: memref<4096x512xf16>, %f: memref<4096x4096xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %s = affine.for %k = 0 to 10000 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<64x10000xf16>
        %y = affine.load %b[%j, %k] : memref<64x10000xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v : f32
        %w = arith.addf %t, %z : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %c[%i, %j] : memref<64x64xf16>
    }
  }
  affine.for %i = 0 to 4096 {
    affine.for %j = 0 to 4096 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %d[%i, %k] : memref<4096x512xf16>
        %y = affine.load %e[%j, %k] : memref<4096x512xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v : f32
        %w = arith.addf %t, %z : f32
        affine.yield %w : f32
      }
      %h = arith.truncf %s : f32 to f16
      affine.store %h, %f[%i, %j] : memref<4096x4096xf16>
    }
  }
  return
}
