// PASSES: fuse-tiles
// ARCH: x86-64-v3
//
// A prime number of rows: contractions have no bounds of their own, so the rows that whole tiles
// leave are a second nest, in which a tile is smaller.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc()
// CHECK:         affine.for %[[T:.*]] = 0 to [[TILES:[0-9]+]] {
// CHECK:           affine.for %[[I:.*]] = 0 to [[ROWS:[0-9]+]] {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 2048 {
// CHECK:               affine.load %{{.*}}[%[[T]] * [[ROWS]] + %[[I]], %{{.*}}]
// CHECK:           math.exp
// CHECK:           affine.store %{{.*}}, %[[OUT:.*]][%[[T]] * [[ROWS]] + %{{.*}}, %{{.*}}] : memref<8191x64xf32>
// CHECK:         affine.for %{{.*}} = 0 to 1 {
// CHECK-NEXT:      memref.alloca()
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to [[REST:[0-9]+]] {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 2048 {
// CHECK:               affine.load %{{.*}}[%[[I]] + [[DONE:[0-9]+]], %{{.*}}]
// CHECK:             math.exp
// CHECK:             affine.store %{{.*}}, %[[OUT]][%{{.*}} + [[DONE]], %{{.*}}]
// CHECK:         return
func.func @main(%q: memref<8191x64xf32>, %k: memref<2048x64xf32>, %v: memref<2048x64xf32>, %out: memref<8191x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %exp = memref.alloc() : memref<8191x2048xf32>
  affine.for %i = 0 to 8191 {
    affine.for %j = 0 to 2048 {
      %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %x = affine.load %q[%i, %d] : memref<8191x64xf32>
        %y = affine.load %k[%j, %d] : memref<2048x64xf32>
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %e = math.exp %r : f32
      affine.store %e, %exp[%i, %j] : memref<8191x2048xf32>
    }
  }
  affine.for %i = 0 to 8191 {
    affine.for %d = 0 to 64 {
      %r = affine.for %j = 0 to 2048 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %exp[%i, %j] : memref<8191x2048xf32>
        %y = affine.load %v[%j, %d] : memref<2048x64xf32>
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %a, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %out[%i, %d] : memref<8191x64xf32>
    }
  }
  return
}
