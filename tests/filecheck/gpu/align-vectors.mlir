// PASSES: align-vectors
//
// Alignments follow from what divides the index, the strides and the beginning of the buffer; what
// kernels rely on is noted for the arguments.

// CHECK:       polyblocks.alignments = [{argument = 0 : i64, bytes = 16 : i64}]
// CHECK-LABEL: gpu.func @k
// CHECK-SAME:  (%[[X:.*]]: memref<8x64xf32>, %[[Y:.*]]: memref<8x61xf32>, %[[W:.*]]: memref<512xi8>)
// CHECK:         vector.load %[[X]][%{{.*}}, %{{.*}}] {alignment = 16 : i64}
// The rows of %y have an odd length.
// CHECK:         vector.load %[[Y]][%{{.*}}] : memref<8x61xf32>
// CHECK:         scf.for
// CHECK:           vector.load %[[X]][%{{.*}}] {alignment = 8 : i64}
// CHECK:         %[[V:.*]] = memref.view %[[W]]
// CHECK:         vector.store %{{.*}}, %[[V]][%{{.*}}] {alignment = 8 : i64}
// CHECK:         vector.store %{{.*}}, %{{.*}}[%{{.*}}] {alignment = 16 : i64} : memref<64xf32, #gpu.address_space<workgroup>>
module attributes {gpu.container_module,
    polyblocks.launches = [
      {kernel = "k", grid = [8, 1, 1], block = [16, 1, 1],
       arguments = [{argument = 0 : i64}, {argument = 1 : i64}, {workspace = 128 : i64}]}]} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<8x64xf32>, %y: memref<8x61xf32>, %w: memref<512xi8>)
        workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %c4 = arith.constant 4 : index
      %c2 = arith.constant 2 : index
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c8 = arith.constant 8 : index
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %i = arith.muli %t, %c4 : index
      %0 = vector.load %x[%b, %i] : memref<8x64xf32>, vector<4xf32>
      %1 = vector.load %y[%b, %i] : memref<8x61xf32>, vector<4xf32>
      scf.for %k = %c0 to %c64 step %c2 {
        %2 = vector.load %x[%b, %k] : memref<8x64xf32>, vector<4xf32>
      }
      %v = memref.view %w[%c8][] : memref<512xi8> to memref<64xf32>
      vector.store %0, %v[%i] : memref<64xf32>, vector<4xf32>
      vector.store %1, %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      gpu.return
    }
  }
}
