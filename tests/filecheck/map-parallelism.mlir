// PASSES: map-parallelism
//
// Big and independent: a team. Small: a loop. Dependent from one iteration to the next: a loop.

// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%{{.*}}) = (0) to (4096) {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 512 {
// CHECK:         polyblocks.level = "team"
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:         affine.for %{{.*}} = 0 to 2097151 {
// CHECK-NOT:     affine.parallel
func.func @main(%a: memref<64x64x512xf32>, %b: memref<8xf32>, %c: memref<2097152xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      affine.for %k = 0 to 512 {
        %x = affine.load %a[%i, %j, %k] : memref<64x64x512xf32>
        %y = arith.negf %x : f32
        affine.store %y, %a[%i, %j, %k] : memref<64x64x512xf32>
      }
    }
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %b[%i] : memref<8xf32>
    affine.store %x, %b[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 2097151 {
    %x = affine.load %c[%i] : memref<2097152xf32>
    %y = affine.load %c[%i + 1] : memref<2097152xf32>
    %z = arith.addf %x, %y : f32
    affine.store %z, %c[%i + 1] : memref<2097152xf32>
  }
  return
}
