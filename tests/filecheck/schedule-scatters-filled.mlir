// PASSES: schedule-scatters
//
// A copy that the caches of one thread keep, and few updates of it: one nest, with one name.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 512 {
// CHECK:           affine.for %[[J:.*]] = 0 to 64 {
// CHECK:             affine.load %arg0[%[[I]], %[[J]]]
// CHECK:             affine.store %{{.*}}, %arg3[%[[I]], %[[J]]]
// CHECK:         } {polyblocks.kernel = "updates"
// CHECK:         affine.for %[[I:.*]] = 0 to 256 {
// CHECK:           affine.for %[[J:.*]] = 0 to 64 {
// CHECK:             memref.load %arg3[%{{.*}}, %[[J]]]
// CHECK:             memref.store %{{.*}}, %arg3[%{{.*}}, %[[J]]]
// CHECK:         } {polyblocks.kernel = "updates"
//
// So is one through a view in one dimension, past a nest that has nothing to do with it.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.store %{{.*}}, %arg6[%[[I]]]
// CHECK:         } {polyblocks.kernel = "other"
// CHECK:         affine.for %[[I:.*]] = 0 to 32768 {
// CHECK:         } {polyblocks.kernel = "updates_of_flat"
// CHECK:         affine.for %[[I:.*]] = 0 to 256 {
// CHECK:         } {polyblocks.kernel = "updates_of_flat"
//
// What changes the source stays behind the copy, and so does the scatter.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 512 {
// CHECK:           affine.load %arg0
// CHECK:         } {polyblocks.kernel = "early"
// CHECK:         } {polyblocks.kernel = "changes"
// CHECK:         } {polyblocks.kernel = "updates_later"
//
// A nest that writes a part is no fill.
//
// CHECK:         } {polyblocks.kernel = "part"
// CHECK:         } {polyblocks.kernel = "updates_of_part"
func.func @main(%x: memref<512x64xf32>, %rows: memref<256xindex>, %updates: memref<256x64xf32>,
                %a: memref<512x64xf32>, %b: memref<512x64xf32>, %c: memref<512x64xf32>,
                %other: memref<64xf32>, %d: memref<512x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<512x64xf32>
      affine.store %v, %a[%i, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "copy", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 64 {
      %u = affine.load %updates[%i, %j] : memref<256x64xf32>
      %r = affine.load %rows[%i] : memref<256xindex>
      %old = memref.load %a[%r, %j] : memref<512x64xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %a[%r, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "updates", polyblocks.kind = "pointwise", polyblocks.sources = []}
  %flat_x = memref.reinterpret_cast %x to offset: [0], sizes: [32768], strides: [1] : memref<512x64xf32> to memref<32768xf32>
  %flat_b = memref.reinterpret_cast %b to offset: [0], sizes: [32768], strides: [1] : memref<512x64xf32> to memref<32768xf32>
  affine.for %i = 0 to 32768 {
    %v = affine.load %flat_x[%i] : memref<32768xf32>
    affine.store %v, %flat_b[%i] : memref<32768xf32>
  } {polyblocks.kernel = "flat", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 64 {
    affine.store %zero, %other[%i] : memref<64xf32>
  } {polyblocks.kernel = "other", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 64 {
      %u = affine.load %updates[%i, %j] : memref<256x64xf32>
      %r = affine.load %rows[%i] : memref<256xindex>
      %old = memref.load %b[%r, %j] : memref<512x64xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %b[%r, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "updates_of_flat", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<512x64xf32>
      affine.store %v, %c[%i, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "early", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 64 {
    affine.store %zero, %x[%i, %i] : memref<512x64xf32>
  } {polyblocks.kernel = "changes", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 64 {
      %u = affine.load %updates[%i, %j] : memref<256x64xf32>
      %r = affine.load %rows[%i] : memref<256xindex>
      %old = memref.load %c[%r, %j] : memref<512x64xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %c[%r, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "updates_later", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 511 {
    affine.for %j = 0 to 64 {
      affine.store %zero, %d[%i, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "part", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 64 {
      %u = affine.load %updates[%i, %j] : memref<256x64xf32>
      %r = affine.load %rows[%i] : memref<256xindex>
      %old = memref.load %d[%r, %j] : memref<512x64xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %d[%r, %j] : memref<512x64xf32>
    }
  } {polyblocks.kernel = "updates_of_part", polyblocks.kind = "pointwise", polyblocks.sources = []}
  return
}
