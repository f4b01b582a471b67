// PASSES: map-parallelism
// ARCH: x86-64-v3
//
// Loops in a tile end where a mask does: later tiles have more to do. Whatever a thread's share of
// all tiles is, those of the loop around them are so many apart as there are threads.

// CHECK:       affine_map<(d0) -> (((d0 mod 64) floordiv 8) * 64 + (d0 mod 8) * 512 + 64)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%{{.*}}) = (0) to (192) {
func.func @main(%a: memref<3x4096x4096xf32>, %out: memref<3x4096xf32>) {
  affine.for %h = 0 to 3 {
    affine.for %t = 0 to 64 {
      %m = memref.alloca() : memref<64xf32>
      affine.for %i = 0 to 64 {
        %low = arith.constant 0xFF800000 : f32
        %0 = affine.for %j = 0 to affine_map<(d0) -> (d0 * 64 + 64)>(%t) iter_args(%most = %low) -> (f32) {
          %x = affine.load %a[%h, %t * 64 + %i, %j] : memref<3x4096x4096xf32>
          %n = arith.maximumf %x, %most : f32
          affine.yield %n : f32
        }
        affine.store %0, %m[%i] : memref<64xf32>
      }
      affine.for %i = 0 to 64 {
        %x = affine.load %m[%i] : memref<64xf32>
        affine.store %x, %out[%h, %t * 64 + %i] : memref<3x4096xf32>
      }
    } {polyblocks.tile}
  }
  return
}
