// PASSES: classify-nests,fuse-sibling-loops
//
// A row that is computed and then summed is one loop: the sum uses what is stored, and a buffer
// that nobody loads any more goes. Nests that read the same argument become one, also past a nest
// that has nothing to do with it. A shifted read, another extent, a nest between that writes what
// the second one reads, and a running sum stay as they are.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloca
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.for %[[J:.*]] = 0 to 256 iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32) {
// CHECK:             %[[X:.*]] = affine.load %{{.*}}[%[[I]], %[[J]]] : memref<64x256xf32>
// CHECK:             %[[E:.*]] = math.exp %[[X]] : f32
// CHECK-NOT:         affine.store
// CHECK:             arith.addf %[[SUM]], %[[E]]
// CHECK:           affine.store %{{.*}}[%[[I]]] : memref<64xf32>
//
// CHECK:         affine.for %[[K:.*]] = 0 to 1000 {
// CHECK:           %[[Y:.*]] = affine.load %{{.*}}[%[[K]]] : memref<1000xf32>
// CHECK:           arith.negf %[[Y]]
// CHECK:           affine.store
// CHECK-NOT:       affine.load
// CHECK:           math.absf %[[Y]]
// CHECK:           affine.store
// CHECK:         affine.for %{{.*}} = 0 to 77 {
//
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:           %[[T:.*]] = memref.alloca
// CHECK:           affine.for %[[J:.*]] = 0 to 300 {
// CHECK:             affine.store %{{.*}}, %[[T]][%[[J]]]
// CHECK:           affine.for %[[J:.*]] = 0 to 300 {
// CHECK:             affine.load %[[T]][-%[[J]] + 299]
//
// CHECK:         affine.for %{{.*}} = 0 to 500 {
// CHECK:         affine.for %{{.*}} = 0 to 499 {
//
// CHECK:         affine.for %{{.*}} = 0 to 400 {
// CHECK:         affine.for %{{.*}} = 0 to 20 {
// CHECK:         affine.for %{{.*}} = 0 to 400 {
//
// CHECK:         affine.for %{{.*}} = 0 to 600 {
// CHECK:         affine.for %{{.*}} = 0 to 600 iter_args
func.func @main(
    %a: memref<64x256xf32>, %s: memref<64xf32>, %b: memref<1000xf32>, %c: memref<1000xf32>,
    %d: memref<1000xf32>, %e: memref<77xf32>, %f: memref<8x300xf32>, %g: memref<8x300xf32>,
    %h: memref<500xf32>, %k: memref<500xf32>, %l: memref<499xf32>, %m: memref<400xf32>,
    %n: memref<400xf32>, %o: memref<400xf32>, %q: memref<20xf32>, %u: memref<4x600xf32>,
    %v: memref<4x600xf32>, %w: memref<4x600xf32>) {
  affine.for %i = 0 to 64 {
    %t = memref.alloca() {alignment = 64 : i64} : memref<256xf32>
    %zero = arith.constant 0.0 : f32
    affine.for %j = 0 to 256 {
      %x = affine.load %a[%i, %j] : memref<64x256xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%j] : memref<256xf32>
    }
    %r = affine.for %j = 0 to 256 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %t[%j] : memref<256xf32>
      %y = arith.addf %p, %x fastmath<reassoc> : f32
      affine.yield %y : f32
    }
    affine.store %r, %s[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 1000 {
    %x = affine.load %b[%i] : memref<1000xf32>
    %y = arith.negf %x : f32
    affine.store %y, %c[%i] : memref<1000xf32>
  }
  affine.for %i = 0 to 77 {
    %x = affine.load %e[%i] : memref<77xf32>
    %y = math.exp %x : f32
    affine.store %y, %e[%i] : memref<77xf32>
  }
  affine.for %i = 0 to 1000 {
    %x = affine.load %b[%i] : memref<1000xf32>
    %y = math.absf %x : f32
    affine.store %y, %d[%i] : memref<1000xf32>
  }
  // Backwards: another iteration stores what is loaded.
  affine.for %i = 0 to 8 {
    %t = memref.alloca() {alignment = 64 : i64} : memref<300xf32>
    affine.for %j = 0 to 300 {
      %x = affine.load %f[%i, %j] : memref<8x300xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%j] : memref<300xf32>
    }
    affine.for %j = 0 to 300 {
      %x = affine.load %t[-%j + 299] : memref<300xf32>
      affine.store %x, %g[%i, %j] : memref<8x300xf32>
    }
  }
  affine.for %i = 0 to 500 {
    %x = affine.load %h[%i] : memref<500xf32>
    %y = arith.negf %x : f32
    affine.store %y, %k[%i] : memref<500xf32>
  }
  affine.for %i = 0 to 499 {
    %x = affine.load %h[%i] : memref<500xf32>
    %y = math.absf %x : f32
    affine.store %y, %l[%i] : memref<499xf32>
  }
  // %q changes between the two.
  affine.for %i = 0 to 400 {
    %x = affine.load %m[%i] : memref<400xf32>
    %y = arith.negf %x : f32
    affine.store %y, %n[%i] : memref<400xf32>
  }
  affine.for %i = 0 to 20 {
    %x = affine.load %n[%i] : memref<400xf32>
    affine.store %x, %q[%i] : memref<20xf32>
  }
  affine.for %i = 0 to 400 {
    %x = affine.load %m[%i] : memref<400xf32>
    %y = affine.load %q[7] : memref<20xf32>
    %z = arith.addf %x, %y : f32
    affine.store %z, %o[%i] : memref<400xf32>
  }
  // A running sum would keep the other one from being vectors of its own.
  affine.for %i = 0 to 4 {
    %zero = arith.constant 0.0 : f32
    affine.for %j = 0 to 600 {
      %x = affine.load %u[%i, %j] : memref<4x600xf32>
      %y = arith.negf %x : f32
      affine.store %y, %v[%i, %j] : memref<4x600xf32>
    }
    %r = affine.for %j = 0 to 600 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %u[%i, %j] : memref<4x600xf32>
      %y = arith.addf %p, %x fastmath<reassoc> : f32
      affine.store %y, %w[%i, %j] : memref<4x600xf32>
      affine.yield %y : f32
    }
  }
  return
}
