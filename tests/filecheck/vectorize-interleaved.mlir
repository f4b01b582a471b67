// PASSES: vectorize-nests
// ARCH: x86-64-v4
//
// An exponential is a long chain of operations: four vectors go through it side by side, as one.
// What is left of the block are single vectors, and what is left of these a masked one.

// CHECK-LABEL: func.func @main
// CHECK-DAG:       %[[END:.*]] = arith.constant 192 : index
// CHECK-DAG:       %[[BLOCK:.*]] = arith.constant 64 : index
// CHECK-DAG:       %[[ONES:.*]] = arith.constant 240 : index
// CHECK-DAG:       %[[WIDTH:.*]] = arith.constant 16 : index
// CHECK:           scf.for %[[J:.*]] = %{{.*}} to %[[END]] step %[[BLOCK]] {
// CHECK-NEXT:        %[[X:.*]] = vector.load %{{.*}}[%{{.*}}, %[[J]]] : memref<8x255xf32>, vector<64xf32>
// CHECK-NEXT:        %[[Y:.*]] = math.exp %[[X]] : vector<64xf32>
// CHECK-NEXT:        vector.store %[[Y]]
// CHECK-NEXT:      }
// CHECK:           scf.for %{{.*}} = %[[END]] to %[[ONES]] step %[[WIDTH]] {
// CHECK:             math.exp %{{.*}} : vector<16xf32>
// CHECK:           vector.maskedload %{{.*}}[%{{.*}}, %[[ONES]]]
// CHECK:           math.exp %{{.*}} : vector<16xf32>
// CHECK:           vector.maskedstore
//
// There are two blocks at least, so a row of few vectors is interleaved less.
//
// CHECK:         affine.for
// CHECK:           math.exp %{{.*}} : vector<32xf32>
// CHECK:           math.exp %{{.*}} : vector<4xf32>
// CHECK:         polyblocks.kernel = "short"
//
// What is carried is widened in front of the loop: by lanes that change nothing, or by itself
// where that is the same. After it halves are combined until one vector is left for the rest.
//
// CHECK:           %[[ZERO:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK:           %[[LOW:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK:           %[[SUM0:.*]] = vector.shuffle %[[ZERO]], %[[ZERO]] [0, 1, {{.*}}, 15, 16, {{.*}}, 31, 16, {{.*}}, 31, 16, {{.*}}, 31]
// CHECK:           %[[MAX0:.*]] = vector.shuffle %[[LOW]], %[[LOW]] [0, 1, {{.*}}, 15, 0, {{.*}}, 15, 0, {{.*}}, 15, 0, {{.*}}, 15]
// CHECK:           %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[S:.*]] = %[[SUM0]], %[[M:.*]] = %[[MAX0]]) -> (vector<64xf32>, vector<64xf32>) {
// CHECK:             %[[E:.*]] = math.exp
// CHECK:             arith.addf %[[S]], %[[E]] fastmath<reassoc> : vector<64xf32>
// CHECK:             arith.maximumf %[[M]], %[[E]] fastmath<nsz> : vector<64xf32>
// CHECK:           arith.addf {{.*}} : vector<32xf32>
// CHECK:           %[[S16:.*]] = arith.addf {{.*}} : vector<16xf32>
// CHECK:           arith.maximumf {{.*}} : vector<32xf32>
// CHECK:           %[[M16:.*]] = arith.maximumf {{.*}} : vector<16xf32>
// CHECK:           vector.maskedload
// CHECK:           %[[S17:.*]] = arith.addf %[[S16]], %{{.*}} : vector<16xf32>
// CHECK:           %[[M17:.*]] = arith.maximumf %[[M16]], %{{.*}} : vector<16xf32>
// CHECK:           arith.select %{{.*}}, %[[S17]], %[[S16]]
// CHECK:           arith.select %{{.*}}, %[[M17]], %[[M16]]
//
// A sum of what is loaded is short: several accumulators, one vector each.
//
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:         polyblocks.kernel = "plain"
func.func @main(%a: memref<8x255xf32>, %b: memref<8x255xf32>, %s: memref<8xf32>, %t: memref<8xf32>, %c: memref<8x200xf32>, %d: memref<8x100xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 255 {
      %x = affine.load %a[%i, %j] : memref<8x255xf32>
      %y = math.exp %x : f32
      affine.store %y, %b[%i, %j] : memref<8x255xf32>
    }
  } {polyblocks.kernel = "rows", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 100 {
      %x = affine.load %d[%i, %j] : memref<8x100xf32>
      %y = math.exp %x : f32
      affine.store %y, %d[%i, %j] : memref<8x100xf32>
    }
  } {polyblocks.kernel = "short", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %r:2 = affine.for %j = 0 to 200 iter_args(%p = %zero, %q = %low) -> (f32, f32) {
      %x = affine.load %c[%i, %j] : memref<8x200xf32>
      %y = math.exp %x : f32
      %u = arith.addf %p, %y fastmath<reassoc> : f32
      %v = arith.maximumf %q, %y : f32
      affine.yield %u, %v : f32, f32
    }
    affine.store %r#0, %s[%i] : memref<8xf32>
    affine.store %r#1, %t[%i] : memref<8xf32>
  } {polyblocks.kernel = "sums", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %r = affine.for %j = 0 to 200 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %c[%i, %j] : memref<8x200xf32>
      %u = arith.addf %p, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %s[%i] : memref<8xf32>
  } {polyblocks.kernel = "plain", polyblocks.kind = "reduction", polyblocks.sources = []}
  return
}
