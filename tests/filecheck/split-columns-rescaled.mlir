// PASSES: split-columns
// ARCH: x86-64-v3
//
// The sum of exponentials depends on the maximum of a row: a block takes its own, and is scaled to
// that of all where blocks are joined. Infinite maxima of blocks scale nothing.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS:[0-9]+]] {
// CHECK:           affine.for %{{.*}} = 0 to [[LENGTH:[0-9]+]] {
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 256 {
// CHECK:             arith.maximumf
// CHECK:             affine.store %{{.*}}, %[[MAXIMA:.*]][%[[B]], %[[I]]]
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 256 {
// CHECK:             %[[OWN:.*]] = affine.load %[[MAXIMA]][%[[B]], %[[I]]]
// CHECK:             arith.cmpf oeq
// CHECK:             %[[M:.*]] = arith.select %{{.*}}, %{{.*}}, %[[OWN]]
// CHECK:             arith.subf %{{.*}}, %[[M]]
// CHECK:             math.exp
// CHECK:             affine.store %{{.*}}, %[[SUMS:.*]][%[[B]], %[[I]]]
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] iter_args
// CHECK:           affine.load %[[MAXIMA]]
// CHECK:         affine.store %{{.*}}, %[[MAX:.*]][%{{.*}}] : memref<256xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 256 {
// CHECK:             %[[OLD:.*]] = affine.load %[[MAXIMA]][%[[B]], %[[I]]]
// CHECK:             %[[NEW:.*]] = affine.load %[[MAX]][%[[I]]]
// CHECK:             arith.subf %{{.*}}, %[[NEW]]
// CHECK:             math.exp
// CHECK:             affine.store %{{.*}}, %[[SCALES:.*]][%[[B]], %[[I]]]
// CHECK:         affine.for %[[B:.*]] = 0 to [[BLOCKS]] iter_args
// CHECK:           affine.load %[[SUMS]]
// CHECK:           affine.load %[[SCALES]]
// CHECK:           arith.mulf
// CHECK:           arith.addf
func.func @main(%x: memref<256x64xf32>, %y: memref<32768x64xf32>, %out: memref<256xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %all = memref.alloc() : memref<256x32768xf32>
  %max = memref.alloc() : memref<256xf32>
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 32768 {
      %d = affine.for %k = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<256x64xf32>
        %b = affine.load %y[%j, %k] : memref<32768x64xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %d, %all[%i, %j] : memref<256x32768xf32>
    }
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %low) -> (f32) {
      %a = affine.load %all[%i, %j] : memref<256x32768xf32>
      %t = arith.maximumf %s, %a : f32
      affine.yield %t : f32
    }
    affine.store %r, %max[%i] : memref<256xf32>
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %zero) -> (f32) {
      %a = affine.load %all[%i, %j] : memref<256x32768xf32>
      %m = affine.load %max[%i] : memref<256xf32>
      %d = arith.subf %a, %m fastmath<reassoc,contract> : f32
      %e = math.exp %d : f32
      %t = arith.addf %s, %e fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %out[%i] : memref<256xf32>
  }
  return
}
