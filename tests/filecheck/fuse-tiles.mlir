// PASSES: fuse-tiles
//
// A stencil over what another stencil made: both run tile by tile, the producer over the rows that
// the tile of the consumer needs, and the buffer between them shrinks to these rows. Whole rows are
// one run of addresses; halves of them would be a run of a page each.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc(
// CHECK:         affine.for %[[T:.*]] = 0 to
// CHECK:           %[[LOCAL:.*]] = memref.alloca() {{.*}} : memref<18x2048xf32>
// CHECK:           affine.for %[[R:.*]] = 0 to 18 {
// CHECK:             affine.for %[[J:.*]] = 0 to 2048 {
// CHECK:               math.exp
// CHECK:               affine.store %{{.*}}, %[[LOCAL]][%[[R]], %[[J]]]
// CHECK:           affine.for %{{.*}} = 0 to 16 {
// CHECK:             affine.for
// CHECK:               affine.load %[[LOCAL]][%{{.*}}, %{{.*}}]
// CHECK:               affine.load %[[LOCAL]][%{{.*}} + 2, %{{.*}}]
// CHECK:         } {polyblocks.kernel = {{.*}}, polyblocks.tile}
func.func @main(%a: memref<2050x2048xf32>, %out: memref<2048x2048xf32>) {
  %b = memref.alloc() : memref<2050x2048xf32>
  affine.for %i = 0 to 2050 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %a[%i, %j] : memref<2050x2048xf32>
      %y = math.exp %x : f32
      affine.store %y, %b[%i, %j] : memref<2050x2048xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %b[%i, %j] : memref<2050x2048xf32>
      %y = affine.load %b[%i + 2, %j] : memref<2050x2048xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<2048x2048xf32>
    }
  }
  return
}
