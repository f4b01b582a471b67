// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// Rows that are swept twice: the longest of the sweeps that come again fetches the next row, in
// vectors, the first sweep nothing. What fits into a cache of one core is not fetched.

// CHECK:       #[[NEXTROW:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK:       #[[AHEAD:.*]] = affine_map<(d0, d1) -> (d0 * 16 + d1 + 2)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 512 {
// CHECK-NOT:       memref.prefetch
// CHECK:           arith.maximumf
// CHECK:           %[[NEXT:.*]] = affine.apply #[[NEXTROW]](%[[I]])
// CHECK:           scf.for %[[J:.*]] = %{{.*}} to
// CHECK:             memref.prefetch %[[A:.*]][%[[NEXT]], %[[J]]], read, locality<2>, data : memref<512x16384xf32>
// CHECK:             %[[J1:.*]] = arith.addi %[[J]], %{{.*}}
// CHECK:             memref.prefetch %[[A]][%[[NEXT]], %[[J1]]], read, locality<2>
// CHECK-COUNT-2:     memref.prefetch
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.load %[[A]][%[[I]], %[[J]]]
// CHECK:             math.exp
// CHECK:           affine.store
//
// CHECK:         affine.for %{{.*}} = 0 to 512 {
// CHECK-NOT:       memref.prefetch
// CHECK:         polyblocks.kernel = "small"
//
// Rows of a tile that one sweep reads: it fetches the next rows, as many as are 4 KiB, into the
// second cache. Of what a later sweep stores, the longest one before it in the tile fetches the
// lines, to be written. Rows of a local buffer are there.
//
// CHECK:         affine.for %[[T:.*]] = 0 to 128 {
// CHECK:           affine.for %[[R:.*]] = 0 to 16 {
// CHECK:             %[[ROW:.*]] = affine.apply #{{.*}}(%[[T]], %[[R]])
// CHECK:             %[[LATER:.*]] = affine.apply #[[AHEAD]](%[[T]], %[[R]])
// CHECK:             scf.for %[[C:.*]] =
// CHECK-DAG:           memref.prefetch %[[B:.*]][%[[LATER]], %[[C]]], read, locality<2>, data : memref<2048x512xf32>
// CHECK-DAG:           memref.prefetch %[[OUT:.*]][%[[ROW]], %[[C]]], write, locality<2>, data : memref<2048x512xf32>
// CHECK:               vector.load %[[B]][%[[ROW]], %[[C]]]
// CHECK:           affine.for %{{.*}} = 0 to 16 {
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.store %{{.*}}, %[[OUT]]
// CHECK:         polyblocks.kernel = "tile"
//
// What is stored past the caches is not fetched before; one sweep alone has hardware to fetch.
//
// CHECK:         affine.for
// CHECK-NOT:       write, locality
// CHECK:           nontemporal
// CHECK-NOT:       write, locality
// CHECK:         polyblocks.kernel = "stream"
// CHECK-NOT:     memref.prefetch
// CHECK:         polyblocks.kernel = "once"
func.func @main(
    %a: memref<512x16384xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "a", role = "input", shape = array<i64: 512, 16384>, strides = array<i64: 16384, 1>, updates = -1 : i64}},
    %b: memref<512x64xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "b", role = "input", shape = array<i64: 512, 64>, strides = array<i64: 64, 1>, updates = -1 : i64}},
    %m: memref<512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "m", role = "output", shape = array<i64: 512>, strides = array<i64: 1>, updates = -1 : i64}},
    %s: memref<512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "s", role = "output", shape = array<i64: 512>, strides = array<i64: 1>, updates = -1 : i64}},
    %c: memref<2048x512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "c", role = "input", shape = array<i64: 2048, 512>, strides = array<i64: 512, 1>, updates = -1 : i64}},
    %d: memref<2048x512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "d", role = "output", shape = array<i64: 2048, 512>, strides = array<i64: 512, 1>, updates = -1 : i64}},
    %e: memref<65536x512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "e", role = "input", shape = array<i64: 65536, 512>, strides = array<i64: 512, 1>, updates = -1 : i64}},
    %f: memref<65536x512xf32> {polyblocks.arg = {constant = false, dtype = "float32", name = "f", role = "output", shape = array<i64: 65536, 512>, strides = array<i64: 512, 1>, updates = -1 : i64}}) {
  affine.for %i = 0 to 512 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %q = affine.for %j = 0 to 16384 iter_args(%p = %low) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<512x16384xf32>
      %y = arith.maximumf %p, %x : f32
      affine.yield %y : f32
    }
    %r = affine.for %j = 0 to 16384 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<512x16384xf32>
      %u = arith.subf %x, %q : f32
      %v = math.exp %u : f32
      %y = arith.addf %p, %v fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.store %q, %m[%i] : memref<512xf32>
    affine.store %r, %s[%i] : memref<512xf32>
  }
  affine.for %i = 0 to 512 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %q = affine.for %j = 0 to 64 iter_args(%p = %low) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<512x64xf32>
      %y = arith.maximumf %p, %x : f32
      affine.yield %y : f32
    }
    %r = affine.for %j = 0 to 64 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<512x64xf32>
      %y = arith.addf %p, %x fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.store %q, %m[%i] : memref<512xf32>
    affine.store %r, %s[%i] : memref<512xf32>
  } {polyblocks.kernel = "small", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %t = 0 to 128 {
    %l = memref.alloca() {alignment = 64 : i64} : memref<16x512xf32>
    affine.for %i = 0 to 16 {
      affine.for %j = 0 to 512 {
        %x = affine.load %c[%t * 16 + %i, %j] : memref<2048x512xf32>
        %y = arith.addf %x, %x : f32
        affine.store %y, %l[%i, %j] : memref<16x512xf32>
      }
    }
    affine.for %i = 0 to 16 {
      affine.for %j = 0 to 512 {
        %x = affine.load %l[%i, %j] : memref<16x512xf32>
        affine.store %x, %d[%t * 16 + %i, %j] : memref<2048x512xf32>
      }
    }
  } {polyblocks.kernel = "tile", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %t = 0 to 4096 {
    %l = memref.alloca() {alignment = 64 : i64} : memref<16x512xf32>
    affine.for %i = 0 to 16 {
      affine.for %j = 0 to 512 {
        %x = affine.load %e[%t * 16 + %i, %j] : memref<65536x512xf32>
        %y = arith.addf %x, %x : f32
        affine.store %y, %l[%i, %j] : memref<16x512xf32>
      }
    }
    affine.for %i = 0 to 16 {
      affine.for %j = 0 to 512 {
        %x = affine.load %l[%i, %j] : memref<16x512xf32>
        affine.store %x, %f[%t * 16 + %i, %j] : memref<65536x512xf32>
      }
    }
  } {polyblocks.kernel = "stream", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 512 {
    affine.for %j = 0 to 16384 {
      %x = affine.load %a[%i, %j] : memref<512x16384xf32>
      %y = arith.addf %x, %x : f32
      affine.store %y, %a[%i, %j] : memref<512x16384xf32>
    }
  } {polyblocks.kernel = "once", polyblocks.kind = "pointwise", polyblocks.sources = []}
  return
}
