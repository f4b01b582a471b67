// PASSES: split-columns
// ARCH: x86-64-v3
//
// Distances of all pairs, of which a cache has room for a few rows only: blocks of columns, whose
// sums are joined. The last block is shorter.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref<256x40000xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS:[0-9]+]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 256 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to [[LENGTH:[0-9]+]] {
// CHECK:               affine.load %{{.*}}[%[[B]] * [[LENGTH]] + %[[J]], %{{.*}}]
// CHECK:               math.exp
// CHECK:               affine.store %{{.*}}, %[[ALL:.*]][%[[B]], %[[I]], %[[J]]] : memref<[[BLOCKS]]x256x[[LENGTH]]xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 256 {
// CHECK-NEXT:        affine.for %[[D:.*]] = 0 to 8 {
// CHECK:               affine.for %[[J:.*]] = 0 to [[LENGTH]] iter_args
// CHECK:                 affine.load %[[ALL]][%[[B]], %[[I]], %[[J]]]
// CHECK:                 affine.load %{{.*}}[%[[B]] * [[LENGTH]] + %[[J]], %[[D]]]
// CHECK:               affine.store %{{.*}}, %[[PARTS:.*]][%[[B]], %[[I]], %[[D]]] : memref<[[BLOCKS]]x256x8xf32>
// CHECK:         affine.store %{{.*}}, %[[REST:.*]][0, %{{.*}}, %{{.*}}] : memref<1x256x{{[0-9]+}}xf32>
// CHECK:         affine.store %{{.*}}, %[[LAST:.*]][0, %{{.*}}, %{{.*}}] : memref<1x256x8xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 256 {
// CHECK-NEXT:      affine.for %[[D:.*]] = 0 to 8 {
// CHECK:             affine.for %[[B:.*]] = 0 to [[BLOCKS]] iter_args
// CHECK-NEXT:          affine.load %[[PARTS]][%[[B]], %[[I]], %[[D]]]
// CHECK:             affine.load %[[LAST]][0, %[[I]], %[[D]]]
// CHECK:             affine.store %{{.*}}, %{{.*}}[%[[I]], %[[D]]]
func.func @main(%x: memref<256x2xf32>, %y: memref<40000x2xf32>, %w: memref<40000x8xf32>, %out: memref<256x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %all = memref.alloc() : memref<256x40000xf32>
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 40000 {
      %d = affine.for %k = 0 to 2 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<256x2xf32>
        %b = affine.load %y[%j, %k] : memref<40000x2xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %e = math.exp %d : f32
      affine.store %e, %all[%i, %j] : memref<256x40000xf32>
    }
  }
  affine.for %i = 0 to 256 {
    affine.for %d = 0 to 8 {
      %r = affine.for %j = 0 to 40000 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %all[%i, %j] : memref<256x40000xf32>
        %b = affine.load %w[%j, %d] : memref<40000x8xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %out[%i, %d] : memref<256x8xf32>
    }
  }
  return
}
